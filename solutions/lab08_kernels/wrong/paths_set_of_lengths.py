# exercise: warp_paths
# told: two paths of one length are issued one after the other
def issued(paths, lengths, block):
    """Instructions that all warps issue; paths are told apart by their lengths."""
    total = 0
    for first in range(0, len(paths), block):
        mine = paths[first : first + block]
        for lane in range(0, len(mine), 32):
            total += sum({lengths[name] for name in mine[lane : lane + 32]})
    return total
