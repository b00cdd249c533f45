# exercise: memory_plan
# told: what is written in place is counted beside what it overwrites
def least_bytes(kernels, outputs, sizes, *, align):
    """The most bytes that one kernel needs in memory."""
    lives, most = lifetimes(kernels, outputs), 0
    for at, _ in enumerate(kernels):
        here = {name for name, (first, last) in lives.items() if first <= at <= last}
        most = max(most, sum(-(-sizes[name] // align) * align for name in here))
    return most
