# exercise: fuse
# told: what the backward pass needs is not written
def with_writes(graph, groups):
    """Kernels of groups of names: each writes what others need, and none do before."""
    needed = {*graph["outputs"]}
    needed |= {one for names in groups for one in reads_of(graph, names)}
    kernels, written = [], set()
    for names in groups:
        writes = [name for name in names if name in needed and name not in written]
        written |= set(writes)
        kernels.append({"nodes": names, "writes": writes})
    return kernels
