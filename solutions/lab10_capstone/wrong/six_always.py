# exercise: cost
# told: the recomputed forward pass is left out
def hours(run, chip, gpus):
    """Six, always."""
    passes = 6
    flop = passes * run["parameters"] * run["tokens"]
    rate = gpus * chip["achieved"] * chip["flop_per_s"]
    return chip["setup_h"] + flop / rate / 3600
