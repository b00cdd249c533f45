# exercise: cost
# told: memory is asked of the GPUs that are rented
def cheapest(run, chip):
    """Asks memory of whole nodes."""
    ways = []
    for gpus in range(1, chip["most_gpus"] + 1):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, rented):
            continue
        if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            ways.append({"gpus": gpus, "rented": rented, "hours": lasts, "money": money})
    return min(ways, key=lambda way: way["money"], default=None)
