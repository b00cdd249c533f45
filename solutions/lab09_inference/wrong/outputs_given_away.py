# exercise: memory_plan
# told: an output's memory is given away before the caller has read it
def lifetimes(kernels, outputs):
    """First and last kernel of each tensor."""
    lives = {}
    for at, kernel in enumerate(kernels):
        for name in kernel["reads"]:
            first = lives[name][0] if name in lives else 0
            lives[name] = (first, at)
        lives[kernel["writes"]] = (at, at)
    return lives
