# exercise: memory_plan
# told: an output's memory is given away before the caller has read it
def lifetimes(kernels, outputs):
    """First and last kernel of each tensor."""
    lives = {}
    for at, kernel in enumerate(kernels):
        for name in kernel["reads"]:
            lives[name] = (lives.get(name, (0, 0))[0], at)
        lives[kernel["writes"]] = (at, at)
    return lives
