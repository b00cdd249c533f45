# exercise: cost
# told: a sample a GPU is not tried
def cheapest(run, chip):
    """Leaves two samples to each GPU."""
    ways = []
    for gpus in range(1, min(chip["most_gpus"], run["batch"] // 2) + 1):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            ways.append({"gpus": gpus, "rented": rented, "hours": lasts, "money": money})
    return min(ways, key=lambda way: way["money"], default=None)
