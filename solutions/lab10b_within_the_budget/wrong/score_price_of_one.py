# exercise: score
# told: the budget does not pay for so many GPUs
# like: score_most_gpus.py
def choose_gpus(job, offers, budget):
    """Pays for one of the GPUs."""
    paid = {}
    for offer in offers:
        run_s = light(job.on(offer.ranks)).seconds
        if run_s * offer.price_per_gpu_s <= budget:
            paid[run_s] = offer.ranks
    return paid[min(paid)]
