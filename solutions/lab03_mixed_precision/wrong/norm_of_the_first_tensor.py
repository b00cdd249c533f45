# exercise: bug_hunt
# told: train_logged returns norms of other gradients


def train_logged(model, batches, optimizer, scaler):
    norms = []
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(mse(model(x), y)).backward()
        scaler.unscale_(optimizer)
        norms.append(float(next(model.parameters()).grad.norm()))
        scaler.step(optimizer)
        scaler.update()
    return norms
