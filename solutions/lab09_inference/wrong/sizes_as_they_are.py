# exercise: memory_plan
# told: sizes are not rounded up to the alignment
def least_bytes(kernels, outputs, sizes, *, align):
    """The most bytes that one kernel needs in memory."""
    lives, needs = lifetimes(kernels, outputs), []
    for at, kernel in enumerate(kernels):
        here = {name for name, (first, last) in lives.items() if first <= at <= last}
        if may_overwrite(at, kernels, outputs, sizes):
            here.remove(kernel["writes"])
        needs.append(sum(sizes[name] for name in here))
    return max(needs)
