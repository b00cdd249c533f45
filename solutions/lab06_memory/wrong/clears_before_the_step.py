# exercise: mend_accumulation
# told: the weights do not move


def train_accumulated(model, batches, optimizer, *, window):
    losses, total = [], 0.0
    for number, (inputs, labels) in enumerate(batches):
        loss = sum_of_losses(model(inputs), labels) / max(1, int((labels != IGNORED).sum())) / window
        loss.backward()
        total += loss.item()
        if (number + 1) % window == 0 or number + 1 == len(batches):
            optimizer.zero_grad()
            optimizer.step()
            losses.append(total)
            total = 0.0
    return losses
