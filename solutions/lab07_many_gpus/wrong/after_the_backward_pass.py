# exercise: buckets
# told: buckets are sent later than they are ready
def run_step(dist, model, groups):
    """Everything is computed before anything is sent."""
    for group in groups:
        for number in group:
            model.backward(number)
    works = [dist.all_reduce(model.bucket(group), async_op=True) for group in groups]
    for work in works:
        work.wait()
    model.update()
