# exercise: mend_accumulation
# told: the optimizer steps after every micro-batch


def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = sum_of_losses(model(inputs), labels) / max(1, int((labels != IGNORED).sum()))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
