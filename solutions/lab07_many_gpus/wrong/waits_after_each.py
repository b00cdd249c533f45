# exercise: buckets
# told: a bucket is waited for while there is still something to compute
def run_step(dist, model, groups):
    """Waits for each bucket as soon as it is sent."""
    for group in groups:
        for number in group:
            model.backward(number)
        dist.all_reduce(model.bucket(group), async_op=True).wait()
    model.update()
