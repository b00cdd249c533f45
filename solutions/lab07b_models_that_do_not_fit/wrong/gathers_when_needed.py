# exercise: sharded_step
# told: nothing is gathered ahead
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
