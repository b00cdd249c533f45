# exercise: warp_paths
# told: paths differ within a warp, not within a block
def issued(paths, lengths, block):
    """The block's paths."""
    total = 0
    for first in range(0, len(paths), block):
        mine = paths[first : first + block]
        for _ in range(0, len(mine), 32):
            total += sum(lengths[name] for name in set(mine))
    return total
