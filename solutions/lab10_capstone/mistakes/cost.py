# %% mistake="all_gpus_left_out"
# told: chip['most_gpus'] GPUs are not tried
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
# told: all passes are counted twice
# %% replace
passes = 8 if run["recompute"] else 6
# %% by
passes = 12 if run["recompute"] else 6


# %% mistake="batch_in_parts"
# told: the batch is not divisible by the number of GPUs
# %% replace
if run["batch"] % gpus or not fits(run, chip, gpus):
    continue
# %% by
if not fits(run, chip, gpus):
    continue


# %% mistake="eight_always"
# told: a second forward pass is counted without recomputation
# %% replace
passes = 8 if run["recompute"] else 6
# %% by
passes = 8


# %% mistake="fastest_that_do"
# told: the fastest run is taken, not the cheapest
# %% replace
return min(ways, key=lambda way: way["money"], default=None)
# %% by
return ways[-1] if ways else None


# %% mistake="fewest_that_do"
# told: the smallest number of GPUs is taken, not the cheapest
# %% replace
return min(ways, key=lambda way: way["money"], default=None)
# %% by
return ways[0] if ways else None


# %% mistake="first_minimum"
# told: the search ends as soon as more GPUs cost more
# %% replace
way = {"gpus": gpus, "rented": rented, "hours": lasts, "money": money}
ways.append(way)
# %% by
if ways and money > ways[-1]["money"]:
    break
ways.append({"gpus": gpus, "rented": rented, "hours": lasts, "money": money})


# %% mistake="fits_but_for_recomputed"
# told: activations are not counted when they are recomputed
def fits(run, chip, gpus):
    """Recomputed, so they are gone."""
    held = run["parameters"] * run["state_bytes"] / gpus
    if not run["recompute"]:
        held += run["activation_bytes"]
    return held <= chip["memory_bytes"]


# %% mistake="fits_shared_activations"
# told: activations are divided by the number of GPUs
def fits(run, chip, gpus):
    """All is shared."""
    return (
        run["parameters"] * run["state_bytes"] + run["activation_bytes"]
    ) / gpus <= chip["memory_bytes"]


# %% mistake="fits_state_alone"
# told: activations are missing from the memory
def fits(run, chip, gpus):
    """No activations."""
    return run["parameters"] * run["state_bytes"] / gpus <= chip["memory_bytes"]


# %% mistake="fits_strictly"
# told: a run that fills the memory exactly is rejected
# %% replace
return shard + run["activation_bytes"] <= chip["memory_bytes"]
# %% by
return shard + run["activation_bytes"] < chip["memory_bytes"]


# %% mistake="fits_whole_state"
# told: each GPU is counted with the whole state
def fits(run, chip, gpus):
    """Nothing is sharded."""
    return (
        run["parameters"] * run["state_bytes"] + run["activation_bytes"]
        <= chip["memory_bytes"]
    )


# %% mistake="forward_alone"
# told: only the forward pass is counted
# %% replace
passes = 8 if run["recompute"] else 6
# %% by
passes = 2


# %% mistake="from_a_node_on"
# told: numbers below the size of a node are not tried
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
# told: idle GPUs are not paid for
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
# told: a run that ends exactly at the deadline is rejected
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
# told: the memory limit is ignored
# %% replace
if run["batch"] % gpus or not fits(run, chip, gpus):
    continue
# %% by
if run["batch"] % gpus:
    continue


# %% mistake="no_deadline"
# told: the deadline is ignored
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
# told: the hours of the set-up are missing
# %% replace
return chip["setup_h"] + flop / rate / 3600
# %% by
return 0 + flop / rate / 3600


# %% mistake="nodes_in_part"
# told: more than chip['most_gpus'] GPUs are rented
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
# told: the work is not divided among the GPUs
# %% replace
rate = gpus * chip["achieved"] * chip["flop_per_s"]
# %% by
rate = chip["achieved"] * chip["flop_per_s"]


# %% mistake="peak_is_achieved"
# told: the peak rate is used instead of the achieved rate
# %% replace
rate = gpus * chip["achieved"] * chip["flop_per_s"]
# %% by
rate = gpus * chip["flop_per_s"]


# %% mistake="rented_hold_the_state"
# told: the memory is checked for the number of rented GPUs
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
# told: the deadline is checked for the number of rented GPUs
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
# told: the hours of the set-up are not paid for
# %% replace
money = rented * lasts * chip["price_per_gpu_h"]
# %% by
money = rented * (lasts - chip["setup_h"]) * chip["price_per_gpu_h"]
# %% replace
return min(ways, key=lambda way: way["money"], default=None)
# %% by
return min(ways, key=lambda way: way["rented"] * way["hours"], default=None)


# %% mistake="six_always"
# told: the recomputed forward pass is missing
# %% replace
passes = 8 if run["recompute"] else 6
# %% by
passes = 6


# %% mistake="training_in_time"
# told: only the training time is compared with the deadline
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
# told: one sample per GPU is not tried
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
# told: only numbers of GPUs that fill whole nodes are tried
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
