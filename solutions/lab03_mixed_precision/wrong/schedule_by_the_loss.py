# exercise: bug_hunt
# told: takes a finite loss for a step that was taken


def train_scheduled(model, batches, optimizer, scaler, scheduler):
    """faulty_scheduled, mended."""
    for x, y in batches:
        optimizer.zero_grad()
        loss = mse(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if torch.isfinite(loss):
            scheduler.step()
