# exercise: buckets
# told: weights are updated before gradients are summed
def run_step(dist, model, groups):
    """Sums after the update."""
    for group in groups:
        for number in group:
            model.backward(number)
    model.update()
    for group in groups:
        dist.all_reduce(model.bucket(group))
