# exercise: bug_hunt
# told: train_clipped does not clip the true gradients to max_norm


def train_clipped(model, batches, optimizer, scaler, *, max_norm):
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(mse(model(x), y)).backward()
        scaler.unscale_(optimizer)
        for weight in model.parameters():
            torch.nn.utils.clip_grad_norm_(weight, max_norm)
        scaler.step(optimizer)
        scaler.update()
