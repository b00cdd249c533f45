# exercise: cost
# told: the peak is taken for what is achieved
def hours(run, chip, gpus):
    """The datasheet's peak."""
    passes = 8 if run["recompute"] else 6
    flop = passes * run["parameters"] * run["tokens"]
    rate = gpus * chip["flop_per_s"]
    return chip["setup_h"] + flop / rate / 3600
