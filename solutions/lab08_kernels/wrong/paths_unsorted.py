# exercise: warp_paths
# told: elements are sorted within their blocks alone
def sorted_paths(paths, lengths, block):
    """Sorts within each block."""
    order = []
    for first in range(0, len(paths), block):
        mine = range(first, min(first + block, len(paths)))
        order += sorted(mine, key=lambda i: paths[i])
    return order
