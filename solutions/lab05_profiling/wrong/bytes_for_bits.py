# exercise: read_the_monitors
# told: the network is full and was not seen


def read_monitors(snapshots, machine, tools):
    def mean(figure_of):
        return sum(figure_of(one) for one in snapshots) / len(snapshots)

    gpus = [
        mean(lambda s, g=g: s["nvidia-smi"][g]["utilisation_percent"]) for g in range(len(snapshots[0]["nvidia-smi"]))
    ]
    cores = [
        mean(lambda s, c=c: s["htop"][c]["user_percent"] + s["htop"][c]["system_percent"])
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
