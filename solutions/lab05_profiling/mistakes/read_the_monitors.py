# %% mistake="bytes_for_bits"
# told: your answer overlooks that the network is full
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    swapped = mean(lambda s: s["memtop"]["swap_byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 100 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if swapped >= SWAPPING_BYTE_PER_S:
        found = "memory"
    elif min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]


# %% mistake="feeding_before_the_gpu"
# told: the GPUs are busy all the time, but your answer is something else
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    swapped = mean(lambda s: s["memtop"]["swap_byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if swapped >= SWAPPING_BYTE_PER_S:
        found = "memory"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    elif min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]


# %% mistake="first_of_the_full"
# told: your answer is not the fullest resource
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    swapped = mean(lambda s: s["memtop"]["swap_byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = next(
        (name for name in ("cpu", "network", "disk") if full[name] >= FULL_PERCENT),
        "disk",
    )
    if swapped >= SWAPPING_BYTE_PER_S:
        found = "memory"
    elif min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]


# %% mistake="iowait_is_work"
# told: your answer counts waiting for the disk as processor work
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(lambda s, c=c: sum(s["htop"][c].values()))
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    swapped = mean(lambda s: s["memtop"]["swap_byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if swapped >= SWAPPING_BYTE_PER_S:
        found = "memory"
    elif min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]


# %% mistake="one_busy_gpu_is_all"
# told: your answer treats one busy GPU as if all GPUs were busy
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    swapped = mean(lambda s: s["memtop"]["swap_byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if swapped >= SWAPPING_BYTE_PER_S:
        found = "memory"
    elif max(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]


# %% mistake="one_core_before_all_cores"
# told: your answer is 'one core', but another resource is full
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    swapped = mean(lambda s: s["memtop"]["swap_byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if swapped >= SWAPPING_BYTE_PER_S:
        found = "memory"
    elif min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]


# %% mistake="one_core_is_never_full"
# told: your answer overlooks one core at its limit
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    swapped = mean(lambda s: s["memtop"]["swap_byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if swapped >= SWAPPING_BYTE_PER_S:
        found = "memory"
    elif min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]


# %% mistake="swapping_never_asked"
# told: your answer overlooks memory that is swapped in and out
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]


# %% mistake="the_cheapest_tool_of_all"
# told: your tool does not show the resource in question
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    swapped = mean(lambda s: s["memtop"]["swap_byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if swapped >= SWAPPING_BYTE_PER_S:
        found = "memory"
    elif min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    else:
        found = "none"
    shown = [tool for tool in tools if tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]


# %% mistake="the_first_tool_that_shows_it"
# told: your tool is not the cheapest one that shows this resource
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    swapped = mean(lambda s: s["memtop"]["swap_byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if swapped >= SWAPPING_BYTE_PER_S:
        found = "memory"
    elif min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, shown[0]["name"]


# %% mistake="the_last_snapshot_alone"
# told: your answer seems to rely on a single moment
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return figure_of(snapshots[-1])

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    swapped = mean(lambda s: s["memtop"]["swap_byte_per_s"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if swapped >= SWAPPING_BYTE_PER_S:
        found = "memory"
    elif min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]


# %% mistake="used_memory_is_short"
# told: your answer treats memory in use as a shortage of memory
def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"])
        for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(
            lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"]
        )
        for c in range(len(snapshots[0]["htop"]))
    ]
    read = mean(lambda s: s["iotop"]["byte_per_s"])
    received = mean(lambda s: s["nettop"]["byte_per_s"])
    used = mean(lambda s: s["memtop"]["used_percent"])
    full = {
        "disk": 100 * read / machine["disk_byte_per_s"],
        "network": 800 * received / machine["link_bit_per_s"],
        "cpu": sum(cores) / len(cores),
    }
    fullest = max(full, key=full.get)
    if used >= FULL_PERCENT:
        found = "memory"
    elif min(gpus) >= FULL_PERCENT:
        found = "gpu"
    elif full[fullest] >= FULL_PERCENT:
        found = fullest
    elif max(cores) >= FULL_PERCENT:
        found = "one core"
    else:
        found = "none"
    shown = [tool for tool in tools if found in tool["shows"]]
    return found, min(shown, key=lambda tool: tool["hours"])["name"]
