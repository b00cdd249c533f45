# exercise: mend_accumulation
# told: the micro-batches at the end never reach a step


def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        count = sum(int((labels != IGNORED).sum()) for _, labels in part)
        optimizer.zero_grad()
        total = 0.0
        for inputs, labels in part:
            loss = sum_of_losses(model(inputs), labels) / count
            loss.backward()
            total += loss.item()
        if len(part) == window:
            optimizer.step()
            losses.append(total)
    return losses
