# exercise: sharded_step
# told: a layer runs before its weights have arrived
def sharded_step(layers):
    """Never waits for a gather."""
    last = layers.count - 1
    gathering = layers.all_gather(0)
    for i in range(layers.count):
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
            reducing.wait()
            layers.update(i + 1)
        reducing = layers.reduce_scatter(i)
    reducing.wait()
    layers.update(0)
