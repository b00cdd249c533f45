# %% mistake="all_gpus_left_out"
# told: your function does not try chip['most_gpus'] GPUs
def cheapest(run, chip):
    """Ends one too soon."""
    ways = []
    for gpus in range(1, chip["most_gpus"]):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            ways.append(
                {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
            )
    return min(ways, key=lambda way: way["money"], default=None)


# %% mistake="all_recomputed"
# told: hours() counts all passes twice
# %% replace
passes = 8 if run["recompute"] else 6
# %% by
passes = 12 if run["recompute"] else 6


# %% mistake="batch_in_parts"
# told: your number of GPUs does not divide the batch
# %% replace
if run["batch"] % gpus or not fits(run, chip, gpus):
    continue
# %% by
if not fits(run, chip, gpus):
    continue


# %% mistake="eight_always"
# told: hours() counts a second forward pass without recomputation
# %% replace
passes = 8 if run["recompute"] else 6
# %% by
passes = 8


# %% mistake="fastest_that_do"
# told: your function takes the fastest run, not the cheapest
# %% replace
return min(ways, key=lambda way: way["money"], default=None)
# %% by
return ways[-1] if ways else None


# %% mistake="fewest_that_do"
# told: your function takes the smallest number of GPUs, not the cheapest
# %% replace
return min(ways, key=lambda way: way["money"], default=None)
# %% by
return ways[0] if ways else None


# %% mistake="first_minimum"
# told: your search ends as soon as more GPUs cost more
# %% replace
way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
ways.append(way)
# %% by
if ways and money > ways[-1]["money"]:
    break
ways.append({"gpus": gpus, "rented": rented, "hours": lasts, "money": money})


# %% mistake="fits_but_for_recomputed"
# told: your function does not count activations when they are recomputed
def fits(run, chip, gpus):
    """Recomputed, so they are gone."""
    held = run["parameters"] * run["state_bytes"] / gpus
    if not run["recompute"]:
        held += run["activation_bytes"]
    return held <= chip["memory_bytes"]


# %% mistake="fits_shared_activations"
# told: your function divides the activations by the number of GPUs
def fits(run, chip, gpus):
    """All is shared."""
    return (
        run["parameters"] * run["state_bytes"] + run["activation_bytes"]
    ) / gpus <= chip["memory_bytes"]


# %% mistake="fits_state_alone"
# told: your function leaves the activations out of the memory
def fits(run, chip, gpus):
    """No activations."""
    return run["parameters"] * run["state_bytes"] / gpus <= chip["memory_bytes"]


# %% mistake="fits_strictly"
# told: your function rejects a run that fills the memory exactly
# %% replace
return shard + run["activation_bytes"] <= chip["memory_bytes"]
# %% by
return shard + run["activation_bytes"] < chip["memory_bytes"]


# %% mistake="fits_whole_state"
# told: your function counts the whole state on each GPU
def fits(run, chip, gpus):
    """Nothing is sharded."""
    return (
        run["parameters"] * run["state_bytes"] + run["activation_bytes"]
        <= chip["memory_bytes"]
    )


# %% mistake="forward_alone"
# told: hours() counts only the forward pass
# %% replace
passes = 8 if run["recompute"] else 6
# %% by
passes = 2


# %% mistake="from_a_node_on"
# told: your function does not try numbers below the size of a node
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
            ways.append(
                {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
            )
    return min(ways, key=lambda way: way["money"], default=None)


# %% mistake="hours_of_the_rented"
# told: the hours of your cheapest number of GPUs are wrong
# %% replace
way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
ways.append(way)
# %% by
lasts = hours(run, chip, rented)
money = rented * lasts * chip["price_per_gpu_h"]
ways.append({"gpus": gpus, "rented": rented, "hours": lasts, "money": money})


# %% mistake="idle_is_free"
# told: your cost leaves out idle GPUs
# %% replace
money = rented * lasts * chip["price_per_gpu_h"]
# %% by
money = gpus * lasts * chip["price_per_gpu_h"]
# %% replace
return min(ways, key=lambda way: way["money"], default=None)
# %% by
return min(
    ways, key=lambda way: way["money"] * way["rented"] / way["gpus"], default=None
)


# %% mistake="late_at_the_deadline"
# told: your function rejects a run that ends exactly at the deadline
# %% replace
if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
    money = rented * lasts * chip["price_per_gpu_h"]
    way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
    ways.append(way)
# %% by
if lasts < run["deadline_h"] and rented <= chip["most_gpus"]:
    money = rented * lasts * chip["price_per_gpu_h"]
    ways.append({"gpus": gpus, "rented": rented, "hours": lasts, "money": money})


# %% mistake="memory_has_no_end"
# told: your function ignores the memory limit
# %% replace
if run["batch"] % gpus or not fits(run, chip, gpus):
    continue
# %% by
if run["batch"] % gpus:
    continue


# %% mistake="no_deadline"
# told: your function ignores the deadline
def cheapest(run, chip):
    """Whenever."""
    ways = []
    for gpus in range(1, chip["most_gpus"] + 1):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts > 0 and rented <= chip["most_gpus"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
            ways.append(way)
    return min(ways, key=lambda way: way["money"], default=None)


# %% mistake="no_set_up"
# told: hours() leaves out the set-up
# %% replace
return chip["setup_h"] + flop / rate / 3600
# %% by
return 0 + flop / rate / 3600


# %% mistake="nodes_in_part"
# told: your function rents more than chip['most_gpus'] GPUs
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


# %% mistake="one_gpus_work"
# told: hours() does not divide the work among the GPUs
# %% replace
rate = gpus * chip["achieved"] * chip["flop_per_s"]
# %% by
rate = chip["achieved"] * chip["flop_per_s"]


# %% mistake="peak_is_achieved"
# told: hours() uses the peak rate instead of the achieved rate
# %% replace
rate = gpus * chip["achieved"] * chip["flop_per_s"]
# %% by
rate = gpus * chip["flop_per_s"]


# %% mistake="rented_hold_the_state"
# told: your function checks the memory for the number of rented GPUs
# %% replace
if run["batch"] % gpus or not fits(run, chip, gpus):
    continue
# %% by
if run["batch"] % gpus or not fits(run, chip, rented):
    continue
# %% replace
way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
ways.append(way)
# %% by
ways.append({"gpus": gpus, "rented": rented, "hours": lasts, "money": money})


# %% mistake="rented_train"
# told: your function checks the deadline for the number of rented GPUs
# %% replace
if lasts <= run["deadline_h"] and rented <= chip["most_gpus"]:
    money = rented * lasts * chip["price_per_gpu_h"]
    way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
    ways.append(way)
# %% by
if hours(run, chip, rented) <= run["deadline_h"] and rented <= chip["most_gpus"]:
    money = rented * lasts * chip["price_per_gpu_h"]
    ways.append({"gpus": gpus, "rented": rented, "hours": lasts, "money": money})


# %% mistake="set_up_is_free"
# told: your cost leaves out the hours of the set-up
# %% replace
money = rented * lasts * chip["price_per_gpu_h"]
# %% by
money = rented * (lasts - chip["setup_h"]) * chip["price_per_gpu_h"]
# %% replace
return min(ways, key=lambda way: way["money"], default=None)
# %% by
return min(ways, key=lambda way: way["rented"] * way["hours"], default=None)


# %% mistake="six_always"
# told: hours() leaves out the recomputed forward pass
# %% replace
passes = 8 if run["recompute"] else 6
# %% by
passes = 6


# %% mistake="training_in_time"
# told: your function compares only the training time with the deadline
def cheapest(run, chip):
    """Set-up in no time."""
    ways = []
    for gpus in range(1, chip["most_gpus"] + 1):
        rented = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        lasts = hours(run, chip, gpus)
        if run["batch"] % gpus or not fits(run, chip, gpus):
            continue
        if lasts - chip["setup_h"] <= run["deadline_h"] and rented <= chip["most_gpus"]:
            money = rented * lasts * chip["price_per_gpu_h"]
            way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
            ways.append(way)
    return min(ways, key=lambda way: way["money"], default=None)


# %% mistake="two_samples_each"
# told: your function does not try one sample per GPU
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
            ways.append(
                {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
            )
    return min(ways, key=lambda way: way["money"], default=None)


# %% mistake="whole_nodes_train"
# told: your function tries only numbers of GPUs that fill whole nodes
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
