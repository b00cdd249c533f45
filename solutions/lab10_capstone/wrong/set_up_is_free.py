# exercise: cost
# told: the set-up is paid, too
def cheapest(run, chip):
    """Training is paid."""
    ways = []
    for gpus in range(1, chip["most_gpus"] + 1):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
            money = rented * (lasts - chip["setup_h"]) * chip["price_per_gpu_h"]
            way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
            ways.append(way)
    return min(ways, key=lambda way: way["rented"] * way["hours"], default=None)
