# exercise: buckets
# told: the first bucket is the last one to be ready
def plan_buckets(layers, link):
    """In the order of the layers, two at a time."""
    order = list(range(len(layers)))
    return [order[at : at + 2] for at in range(0, len(order), 2)]


def run_step(dist, model, groups):
    """All of the backward pass, and then the sums."""
    for number in sorted((one for group in groups for one in group), reverse=True):
        model.backward(number)
    works = [dist.all_reduce(model.bucket(group), async_op=True) for group in groups]
    for work in works:
        work.wait()
    model.update()
