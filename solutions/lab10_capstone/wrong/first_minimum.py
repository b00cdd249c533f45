# exercise: cost
# told: the search ends as soon as more GPUs cost more
def cheapest(run, chip):
    """Stops where money rises."""
    ways = []
    for gpus in range(1, chip["most_gpus"] + 1):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            if ways and money > ways[-1]["money"]:
                break
            ways.append({"gpus": gpus, "rented": rented, "hours": lasts, "money": money})
    return min(ways, key=lambda way: way["money"], default=None)
