# exercise: cost
# told: all is recomputed
def hours(run, chip, gpus):
    """Everything twice."""
    passes = 12 if run["recompute"] else 6
    flop = passes * run["parameters"] * run["tokens"]
    rate = gpus * chip["achieved"] * chip["flop_per_s"]
    return chip["setup_h"] + flop / rate / 3600
