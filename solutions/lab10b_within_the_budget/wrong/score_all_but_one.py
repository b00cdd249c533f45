# exercise: score
# told: no offer has so many GPUs
def choose_gpus(job, offers, budget):
    """One GPU is for something else."""
    return max(offer.ranks for offer in offers) - 1
