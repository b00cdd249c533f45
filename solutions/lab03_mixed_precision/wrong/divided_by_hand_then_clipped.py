# exercise: bug_hunt
# told: or unscales them twice
# like: loops_as_they_were.py
import torch


def train_clipped(model, batches, optimizer, scaler, *, max_norm):
    for x, y in batches:
        optimizer.zero_grad()
        scaler.scale(mse(model(x), y)).backward()
        for weight in model.parameters():
            weight.grad /= scaler.get_scale()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
