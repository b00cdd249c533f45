# %% mistake="first_layer_is_forgotten"
# told: your step is incomplete
# %% replace
reducing.wait()
layers.update(0)
# %% by


# %% mistake="gathers_all_first"
# told: your step gathers all layers before the first layer runs
def sharded_step(layers):
    """Everything is there before anything runs."""
    for work in [layers.all_gather(i) for i in range(layers.count)]:
        work.wait()
    for i in range(layers.count):
        layers.forward(i)
    for i in reversed(range(layers.count)):
        layers.backward(i)
        layers.free(i)
        layers.reduce_scatter(i).wait()
        layers.update(i)


# %% mistake="gathers_behind_the_pass"
# told: your step gathers the next layer after the pass that should hide this gather
# %% replace
gathering.wait()
if i < last:
    gathering = layers.all_gather(i + 1)
# %% by
gathering.wait()
layers.forward(i)
if i < last:
    gathering = layers.all_gather(i + 1)
# %% replace
layers.forward(i)
# %% by
# %% replace
if i < last:
    gathering.wait()
# %% by
if i < last:
    gathering.wait()
layers.backward(i)
# %% replace
layers.backward(i)
# %% by


# %% mistake="gathers_when_needed"
# told: your step gathers nothing ahead, so computing waits for weights
def sharded_step(layers):
    """Gathers right before each pass."""
    for i in range(layers.count):
        layers.all_gather(i).wait()
        layers.forward(i)
        layers.free(i)
    reducing = None
    for i in reversed(range(layers.count)):
        layers.all_gather(i).wait()
        layers.backward(i)
        layers.free(i)
        if reducing:
            reducing.wait()
            layers.update(i + 1)
        reducing = layers.reduce_scatter(i)
    reducing.wait()
    layers.update(0)


# %% mistake="keeps_weights_for_backward"
# told: your step keeps weights in memory from the forward to the backward pass
def sharded_step(layers):
    """Gathers once."""
    ahead = layers.all_gather(0)
    for i in range(layers.count):
        ahead.wait()
        if i < layers.count - 1:
            ahead = layers.all_gather(i + 1)
        layers.forward(i)
    for i in reversed(range(layers.count)):
        layers.backward(i)
        layers.free(i)
        layers.reduce_scatter(i).wait()
        layers.update(i)


# %% mistake="never_frees_weights"
# told: your step never frees gathered weights
def sharded_step(layers):
    """Keeps what it has gathered."""
    works = []
    for i in range(layers.count):
        layers.all_gather(i).wait()
        layers.forward(i)
    for i in reversed(range(layers.count)):
        layers.backward(i)
        works.append(layers.reduce_scatter(i))
        works[-1].wait()
        layers.update(i)


# %% mistake="no_second_gather"
# told: has no data to work on
def sharded_step(layers):
    """Frees everything, and goes back."""
    for i in range(layers.count):
        layers.all_gather(i).wait()
        layers.forward(i)
        layers.free(i)
    for i in reversed(range(layers.count)):
        layers.backward(i)
        layers.reduce_scatter(i).wait()
        layers.update(i)


# %% mistake="runs_before_the_weights"
# told: your step runs a layer before its weights have arrived
# %% replace
gathering.wait()
if i < last:
    gathering = layers.all_gather(i + 1)
# %% by
if i < last:
    gathering = layers.all_gather(i + 1)


# %% mistake="sums_at_the_end"
# told: your step keeps the gradients of all layers until the end
def sharded_step(layers):
    """Sums after the whole backward pass."""
    last = layers.count - 1
    gathering = layers.all_gather(0)
    for i in range(layers.count):
        gathering.wait()
        if i < last:
            gathering = layers.all_gather(i + 1)
        layers.forward(i)
        if i < last:
            layers.free(i)
    for i in reversed(range(layers.count)):
        if i < last:
            gathering.wait()
        if i:
            gathering = layers.all_gather(i - 1)
        layers.backward(i)
        layers.free(i)
    for i in range(layers.count):
        layers.reduce_scatter(i).wait()
        layers.update(i)


# %% mistake="two_gathers_ahead"
# told: your step gathers too many layers ahead
def sharded_step(layers):
    """Two layers on their way, so that nothing ever waits."""
    last, works = layers.count - 1, {0: layers.all_gather(0), 1: layers.all_gather(1)}
    for i in range(layers.count):
        works[i].wait()
        if i + 2 <= last:
            works[i + 2] = layers.all_gather(i + 2)
        layers.forward(i)
        if i < last:
            layers.free(i)
    reducing, works = None, {last - 1: layers.all_gather(last - 1)}
    for i in reversed(range(layers.count)):
        if i < last:
            works[i].wait()
        if i > 1:
            works[i - 2] = layers.all_gather(i - 2)
        layers.backward(i)
        layers.free(i)
        if reducing:
            reducing.wait()
            layers.update(i + 1)
        reducing = layers.reduce_scatter(i)
    reducing.wait()
    layers.update(0)


# %% mistake="updates_before_the_sum"
# told: your step updates a shard before the sum of its gradients has arrived
def sharded_step(layers):
    """Never waits for a sum."""
    last = layers.count - 1
    gathering = layers.all_gather(0)
    for i in range(layers.count):
        gathering.wait()
        if i < last:
            gathering = layers.all_gather(i + 1)
        layers.forward(i)
        if i < last:
            layers.free(i)
    reducing = None
    for i in reversed(range(layers.count)):
        if i < last:
            gathering.wait()
        if i:
            gathering = layers.all_gather(i - 1)
        layers.backward(i)
        layers.free(i)
        if reducing:
            layers.update(i + 1)
        reducing = layers.reduce_scatter(i)
    layers.update(0)


# %% mistake="updates_one_layer_later"
# told: your step frees gradients too late
def sharded_step(layers):
    """Sums have two passes to hide behind."""
    last = layers.count - 1
    gathering = layers.all_gather(0)
    for i in range(layers.count):
        gathering.wait()
        if i < last:
            gathering = layers.all_gather(i + 1)
        layers.forward(i)
        if i < last:
            layers.free(i)
    sums = {}
    for i in reversed(range(layers.count)):
        if i < last:
            gathering.wait()
        if i:
            gathering = layers.all_gather(i - 1)
        layers.backward(i)
        layers.free(i)
        sums[i] = layers.reduce_scatter(i)
        if i + 2 in sums:
            sums.pop(i + 2).wait()
            layers.update(i + 2)
    for i in (1, 0):
        sums[i].wait()
        layers.update(i)


# %% mistake="updates_without_a_sum"
# told: your step updates a shard without a sum over the ranks
def sharded_step(layers):
    """Updates from what this rank has."""
    last = layers.count - 1
    gathering = layers.all_gather(0)
    for i in range(layers.count):
        gathering.wait()
        if i < last:
            gathering = layers.all_gather(i + 1)
        layers.forward(i)
        if i < last:
            layers.free(i)
    for i in reversed(range(layers.count)):
        if i < last:
            gathering.wait()
        if i:
            gathering = layers.all_gather(i - 1)
        layers.backward(i)
        layers.free(i)
        layers.update(i)


# %% mistake="waits_for_every_sum"
# told: in your step, computing waits for every sum
def sharded_step(layers):
    """Updates at once."""
    last = layers.count - 1
    gathering = layers.all_gather(0)
    for i in range(layers.count):
        gathering.wait()
        if i < last:
            gathering = layers.all_gather(i + 1)
        layers.forward(i)
        if i < last:
            layers.free(i)
    for i in reversed(range(layers.count)):
        if i < last:
            gathering.wait()
        if i:
            gathering = layers.all_gather(i - 1)
        layers.backward(i)
        layers.free(i)
        layers.reduce_scatter(i).wait()
        layers.update(i)
