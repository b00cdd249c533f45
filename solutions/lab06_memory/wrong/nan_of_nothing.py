# exercise: mend_accumulation
# told: a mean over no positions at all was taken


def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        counts = [(labels != IGNORED).sum() for _, labels in part]
        optimizer.zero_grad()
        total = 0.0
        for (inputs, labels), count in zip(part, counts, strict=True):
            mean = sum_of_losses(model(inputs), labels) / count
            loss = mean * count / sum(counts)
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses
