# exercise: memory_plan
# told: a tensor's life ends with its first reader
def lifetimes(kernels, outputs):
    """First and last kernel of each tensor."""
    lives, ends = {}, set()
    for at, kernel in enumerate(kernels):
        for name in kernel["reads"]:
            first = lives[name][0] if name in lives else 0
            if name not in ends:
                lives[name] = (first, at)
                ends.add(name)
        lives[kernel["writes"]] = (at, at)
    for name in outputs:
        lives[name] = (lives[name][0], len(kernels) - 1)
    return lives
