# exercise: warp_paths
# told: the order does not have every element once
def sorted_paths(paths, lengths, block):
    """Numbers within their block."""
    order = []
    for first in range(0, len(paths), block):
        mine = paths[first : first + block]
        order += sorted(range(len(mine)), key=lambda i: mine[i])
    return order
