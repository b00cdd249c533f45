# exercise: train_it
# told: update() is called before step()


def train_in_half(model, batches, optimizer, scaler):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = model.loss(x, y)
        losses.append(loss.item() / model.loss_weight)
        scaler.scale(loss).backward()
        scaler.update()
        scaler.step(optimizer)
    return losses
