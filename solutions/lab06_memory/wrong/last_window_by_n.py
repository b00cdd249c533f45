# exercise: mend_accumulation
# told: a window that is shorter was divided as if it were complete


def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        optimizer.zero_grad()
        total = 0.0
        for inputs, labels in batches[start : start + window]:
            loss = sum_of_losses(model(inputs), labels) / int((labels != IGNORED).sum()) / window
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses
