# exercise: buckets
# told: a bucket is sent before all of its gradients are there
def run_step(dist, model, groups):
    """Sends when the first layer of the bucket is ready."""
    works = []
    for group in groups:
        model.backward(group[0])
        works.append(dist.all_reduce(model.bucket(group), async_op=True))
        for number in group[1:]:
            model.backward(number)
    for work in works:
        work.wait()
    model.update()
