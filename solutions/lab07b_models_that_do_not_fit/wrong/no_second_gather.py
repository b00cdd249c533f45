# exercise: sharded_step
# told: finds nothing
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
