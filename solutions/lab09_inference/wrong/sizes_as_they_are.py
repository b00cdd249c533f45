# exercise: memory_plan
# told: sizes are not rounded up to the alignment
def least_bytes(kernels, outputs, sizes, *, align):
    """The most bytes that one kernel needs in memory."""
    lives, most = lifetimes(kernels, outputs), 0
    for at, kernel in enumerate(kernels):
        here = {name for name, (first, last) in lives.items() if first <= at <= last}
        if may_overwrite(at, kernels, outputs, sizes):
            here.remove(kernel["writes"])
        most = max(most, sum(sizes[name] for name in here))
    return most
