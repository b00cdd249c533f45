# exercise: bug_hunt
# told: train_static still loses gradients on the way back
# like: still_a_small_number.py


def train_static(model, batches, optimizer, half_gradients):
    scale = 2.0**14
    for x, y in batches:
        optimizer.zero_grad()
        (scale * mse(half_gradients(model(x)), y)).backward()
        for weight in model.parameters():
            weight.grad /= scale
        optimizer.step()
