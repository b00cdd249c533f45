# exercise: sharded_step
# told: all layers are gathered before the first one runs
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
