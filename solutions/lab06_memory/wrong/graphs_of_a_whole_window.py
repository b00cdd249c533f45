# exercise: mend_accumulation
# told: the graphs of several micro-batches are held at once
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        counted = sum(int((labels != IGNORED).sum()) for _, labels in part)
        optimizer.zero_grad()
        loss = sum(sum_of_losses(model(inputs), labels) for inputs, labels in part) / counted
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
