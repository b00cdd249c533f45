# exercise: warp_paths
# told: a warp issues a path once for all its threads
def issued(paths, lengths, block):
    """Every thread."""
    total = 0
    for first in range(0, len(paths), block):
        mine = paths[first : first + block]
        for lane in range(0, len(mine), 32):
            total += sum(lengths[name] for name in mine[lane : lane + 32])
    return total
