# exercise: cost
# told: only the forward pass is counted
def hours(run, chip, gpus):
    """Two a parameter and token."""
    passes = 2
    flop = passes * run["parameters"] * run["tokens"]
    rate = gpus * chip["achieved"] * chip["flop_per_s"]
    return chip["setup_h"] + flop / rate / 3600
