# exercise: sharded_step
# told: gathered weights are never freed
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
