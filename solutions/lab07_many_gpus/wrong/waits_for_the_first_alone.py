# exercise: buckets
# told: the update reads gradients that are still on their way
# like: never_waits.py
def run_step(dist, model, groups):
    """Waits for one work only."""
    works = []
    for group in groups:
        for number in group:
            model.backward(number)
        works.append(dist.all_reduce(model.bucket(group), async_op=True))
    works[0].wait()
    model.update()
