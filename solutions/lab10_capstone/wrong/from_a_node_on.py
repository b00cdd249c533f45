# exercise: cost
# told: fewer GPUs than a node has are not tried
def cheapest(run, chip):
    """A whole node is rented anyway."""
    ways = []
    for gpus in range(chip["node_gpus"], chip["most_gpus"] + 1):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            ways.append({"gpus": gpus, "rented": rented, "hours": lasts, "money": money})
    return min(ways, key=lambda way: way["money"], default=None)
