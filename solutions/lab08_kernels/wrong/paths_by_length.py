# exercise: warp_paths
# told: two paths of one length are still two paths
def sorted_paths(paths, lengths, block):
    """The numbers of the elements, shorter paths first."""
    return sorted(range(len(paths)), key=lambda i: lengths[paths[i]])
