# exercise: mend_accumulation
# told: the gradients of the window before are still there


def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    optimizer.zero_grad()
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        count = sum(int((labels != IGNORED).sum()) for _, labels in part)
        total = 0.0
        for inputs, labels in part:
            loss = sum_of_losses(model(inputs), labels) / count
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses
