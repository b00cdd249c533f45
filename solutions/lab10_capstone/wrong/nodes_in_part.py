# exercise: cost
# told: more GPUs are rented than there are
def cheapest(run, chip):
    """The last node, too."""
    ways = []
    for gpus in range(1, chip["most_gpus"] + 1):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts <= run["deadline_h"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
            ways.append(way)
    return min(ways, key=lambda way: way["money"], default=None)
