# exercise: mend_accumulation
# told: a reported loss is not its window's mean


def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        count = sum(int((labels != IGNORED).sum()) for _, labels in part)
        optimizer.zero_grad()
        for inputs, labels in part:
            loss = sum_of_losses(model(inputs), labels) / count
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
