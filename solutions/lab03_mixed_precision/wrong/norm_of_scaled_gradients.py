# exercise: bug_hunt
# told: train_logged takes the norm while the gradients are still scaled


def train_logged(model, batches, optimizer, scaler):
    norms = []
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(mse(model(x), y)).backward()
        norm = torch.nn.utils.get_total_norm([weight.grad for weight in model.parameters()])
        norms.append(float(norm) / scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()
    return norms
