# exercise: cost
# told: the fewest GPUs are not the cheapest
def cheapest(run, chip):
    """The first."""
    ways = []
    for gpus in range(1, chip["most_gpus"] + 1):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
            ways.append(way)
    return ways[0] if ways else None
