# %% mistake="a_scale_for_the_large_ones"
# told: train_static still loses gradients in the backward pass
# like: still_a_small_number
# %% replace
scale = 2.0**28
# %% by
scale = 2.0**14


# %% mistake="clips_each_tensor"
# told: train_clipped does not clip the true gradients to max_norm
# %% replace
torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
# %% by
for weight in model.parameters():
    torch.nn.utils.clip_grad_norm_(weight, max_norm)


# %% mistake="divided_by_hand_then_clipped"
# told: or unscales them twice
# like: loops_as_they_were
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


# %% mistake="loops_as_they_were"
# told: train_clipped still clips gradients that are scaled
train_clipped, train_logged, train_accumulated = (
    faulty_clipped,
    faulty_logged,
    faulty_accumulated,
)
train_scheduled, train_static = faulty_scheduled, faulty_static


# %% mistake="multiplied_twice"
# told: train_static
# %% replace
weight.grad /= scale
# %% by
weight.grad *= scale


# %% mistake="norm_of_scaled_gradients"
# told: train_logged takes the norm while the gradients are still scaled
# %% replace
scaler.unscale_(optimizer)
gradients = [weight.grad for weight in model.parameters()]
norms.append(float(torch.nn.utils.get_total_norm(gradients)))
# %% by
norm = torch.nn.utils.get_total_norm([weight.grad for weight in model.parameters()])
norms.append(float(norm) / scaler.get_scale())


# %% mistake="norm_of_the_first_tensor"
# told: train_logged does not return the norms of the true gradients
# %% replace
gradients = [weight.grad for weight in model.parameters()]
norms.append(float(torch.nn.utils.get_total_norm(gradients)))
# %% by
norms.append(float(next(model.parameters()).grad.norm()))


# %% mistake="norms_divided_twice"
# told: train_logged still divides by the scale twice
train_logged = faulty_logged


# %% mistake="schedule_by_the_batch"
# told: train_scheduled still moves the schedule when the step was skipped
train_scheduled = faulty_scheduled


# %% mistake="schedule_by_the_loss"
# told: treats a finite loss as a step that was taken
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


# %% mistake="still_a_small_number"
# told: train_static still loses gradients in the backward pass
def train_static(model, batches, optimizer, half_gradients):
    for x, y in batches:
        optimizer.zero_grad()
        mse(half_gradients(model(x)), y).backward()
        optimizer.step()


# %% mistake="unscales_the_first_tensor"
# told: train_static overflows
# %% replace
for weight in model.parameters():
    weight.grad /= scale
# %% by
next(model.parameters()).grad.div_(scale)
