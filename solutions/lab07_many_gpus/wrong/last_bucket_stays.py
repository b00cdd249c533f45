# exercise: buckets
# told: gradients of some layers are never summed
def run_step(dist, model, groups):
    """Forgets what follows the last full bucket."""
    works = []
    for group in groups:
        for number in group:
            model.backward(number)
        if group is not groups[-1]:
            works.append(dist.all_reduce(model.bucket(group), async_op=True))
    for work in works:
        work.wait()
    model.update()
