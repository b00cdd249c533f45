# exercise: mend_accumulation
# told: every micro-batch counts the same, however many of its positions count


def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        optimizer.zero_grad()
        total = 0.0
        for inputs, labels in part:
            loss = sum_of_losses(model(inputs), labels) / max(1, int((labels != IGNORED).sum())) / len(part)
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses
