# exercise: train_it
# told: the network did not learn


def train_in_half(model, batches, optimizer, scaler):
    for x, y in batches:
        optimizer.zero_grad()
        model.loss(x, y).backward()
        optimizer.step()
        scaler.update()
    return []
