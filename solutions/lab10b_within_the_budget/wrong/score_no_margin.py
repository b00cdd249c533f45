# exercise: score
# told: the budget pays for so many GPUs at the speed of light alone
def choose_gpus(job, offers, budget):
    """As if the run were as fast as light."""
    paid = {}
    for offer in offers:
        run_s = light(job.on(offer.ranks)).seconds
        if run_s * offer.ranks * offer.price_per_gpu_s <= budget:
            paid[run_s] = offer.ranks
    return paid[min(paid)]
