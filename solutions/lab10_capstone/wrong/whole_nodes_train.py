# exercise: cost
# told: whole nodes train, though fewer GPUs would do
def cheapest(run, chip):
    """Whole nodes."""
    ways = []
    for gpus in range(chip["node_gpus"], chip["most_gpus"] + 1, chip["node_gpus"]):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
            ways.append(way)
    return min(ways, key=lambda way: way["money"], default=None)
