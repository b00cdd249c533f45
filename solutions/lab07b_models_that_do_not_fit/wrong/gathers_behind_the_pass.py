# exercise: sharded_step
# told: the next layer is gathered after the pass that should hide it
def sharded_step(layers):
    """Passes first, then the next gather."""
    last = layers.count - 1
    gathering = layers.all_gather(0)
    for i in range(layers.count):
        gathering.wait()
        layers.forward(i)
        if i < last:
            gathering = layers.all_gather(i + 1)
        if i < last:
            layers.free(i)
    reducing = None
    for i in reversed(range(layers.count)):
        if i < last:
            gathering.wait()
        layers.backward(i)
        if i:
            gathering = layers.all_gather(i - 1)
        layers.free(i)
        if reducing:
            reducing.wait()
            layers.update(i + 1)
        reducing = layers.reduce_scatter(i)
    reducing.wait()
    layers.update(0)
