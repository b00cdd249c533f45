# exercise: score
# told: no offer has so many GPUs
def choose_gpus(job, offers, budget):
    """The number of the offer, and not its GPUs."""
    return max(at for at, offer in enumerate(offers) if offer.ranks)
