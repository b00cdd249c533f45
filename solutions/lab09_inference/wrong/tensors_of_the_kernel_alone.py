# exercise: memory_plan
# told: only what a kernel itself reads and writes was counted
def least_bytes(kernels, outputs, sizes, *, align):
    """The most bytes that one kernel needs in memory."""
    needs = []
    for at, kernel in enumerate(kernels):
        here = {*kernel["reads"], kernel["writes"]}
        if may_overwrite(at, kernels, outputs, sizes):
            here.remove(kernel["writes"])
        needs.append(sum(-(-sizes[name] // align) * align for name in here))
    return max(needs)
