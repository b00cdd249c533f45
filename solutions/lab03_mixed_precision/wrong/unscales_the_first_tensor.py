# exercise: bug_hunt
# told: train_static overflows


def train_static(model, batches, optimizer, half_gradients):
    scale = 2.0**28
    for x, y in batches:
        optimizer.zero_grad()
        (scale * mse(half_gradients(model(x)), y)).backward()
        next(model.parameters()).grad.div_(scale)
        optimizer.step()
