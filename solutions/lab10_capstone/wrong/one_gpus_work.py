# exercise: cost
# told: the work of one GPU is not shared
def hours(run, chip, gpus):
    """One GPU."""
    passes = 8 if run["recompute"] else 6
    flop = passes * run["parameters"] * run["tokens"]
    rate = chip["achieved"] * chip["flop_per_s"]
    return chip["setup_h"] + flop / rate / 3600
