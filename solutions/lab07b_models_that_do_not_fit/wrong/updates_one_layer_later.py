# exercise: sharded_step
# told: gradients are let go too late
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
