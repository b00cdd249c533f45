# exercise: sharded_step
# told: weights stay from the forward to the backward pass
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
