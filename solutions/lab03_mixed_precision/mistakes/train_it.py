# %% mistake="a_quarter_of_the_batches"
# told: more than 2 % above that of fp32
_right_training = train_in_half


def train_in_half(model, batches, optimizer, scaler):
    return _right_training(model, batches[::4], optimizer, scaler)


# %% mistake="never_updates"
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


# %% mistake="trains_without_scaling"
# told: the network did not learn
def train_in_half(model, batches, optimizer, scaler):
    for x, y in batches:
        optimizer.zero_grad()
        model.loss(x, y).backward()
        optimizer.step()
        scaler.update()
    return []


# %% mistake="updates_before_the_step"
# told: your loop calls update() before step()
# %% replace
scaler.scale(loss).backward()
# %% by
scaler.scale(loss).backward()
scaler.update()
# %% replace
scaler.update()
# %% by


# %% mistake="losses_after_the_step"
# told: the returned losses are not those that your loop trained on
# %% replace
losses.append(loss.item() / model.loss_weight)
# %% by
# %% replace
scaler.update()
# %% by
scaler.update()
losses.append(model.loss(x, y).item() / model.loss_weight)
