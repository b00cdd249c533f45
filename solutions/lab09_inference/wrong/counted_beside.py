# exercise: memory_plan
# told: what is written in place is counted beside what it overwrites
def least_bytes(kernels, outputs, sizes, *, align):
    """The most bytes that one kernel needs in memory."""
    lives, needs = lifetimes(kernels, outputs), []
    for at in range(len(kernels)):
        here = {name for name, (first, last) in lives.items() if first <= at <= last}
        needs.append(sum(-(-sizes[name] // align) * align for name in here))
    return max(needs)
