# exercise: cost
# told: the hours to set up are left out
def hours(run, chip, gpus):
    """No set-up."""
    passes = 8 if run["recompute"] else 6
    flop = passes * run["parameters"] * run["tokens"]
    rate = gpus * chip["achieved"] * chip["flop_per_s"]
    return 0 + flop / rate / 3600
