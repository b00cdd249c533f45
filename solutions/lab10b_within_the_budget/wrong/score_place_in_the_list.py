# exercise: score
# told: an offer's place in the list came back
def choose_gpus(job, offers, budget):
    """The index of the right offer."""
    paid = {}
    for index, offer in enumerate(offers):
        run_s = light(job.on(offer.ranks)).seconds / 0.85
        if run_s * offer.ranks * offer.price_per_gpu_s <= budget:
            paid[run_s] = index
    return paid[min(paid)]
