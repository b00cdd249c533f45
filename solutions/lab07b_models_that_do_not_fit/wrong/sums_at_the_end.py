# exercise: sharded_step
# told: the gradients of all layers wait for the end
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
