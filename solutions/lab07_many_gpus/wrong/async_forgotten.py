# exercise: buckets
# told: the backward pass stands still while sums travel
def run_step(dist, model, groups):
    """Calls all_reduce as it comes."""
    for group in groups:
        for number in group:
            model.backward(number)
        dist.all_reduce(model.bucket(group))
    model.update()
