# exercise: mend_accumulation
# told: gradients from before the first window are still there


def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        count = sum(int((labels != IGNORED).sum()) for _, labels in part)
        total = 0.0
        for inputs, labels in part:
            loss = sum_of_losses(model(inputs), labels) / count
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
    return losses
