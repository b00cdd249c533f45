# exercise: mend_accumulation
# told: the means of a window's micro-batches were added up


def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        optimizer.zero_grad()
        found = []
        for inputs, labels in batches[start : start + window]:
            loss = sum_of_losses(model(inputs), labels) / max(1, int((labels != IGNORED).sum()))
            loss.backward()
            found.append(loss.item())
        optimizer.step()
        losses.append(sum(found) / len(found))
    return losses
