# exercise: bug_hunt
# told: train_static still loses gradients on the way back


def train_static(model, batches, optimizer, half_gradients):
    for x, y in batches:
        optimizer.zero_grad()
        mse(half_gradients(model(x)), y).backward()
        optimizer.step()
