# exercise: memory_plan
# told: an input is in memory before its first reader
def lifetimes(kernels, outputs):
    """First and last kernel of each tensor."""
    lives = {}
    for at, kernel in enumerate(kernels):
        for name in kernel["reads"]:
            first = lives[name][0] if name in lives else at
            lives[name] = (first, at)
        lives[kernel["writes"]] = (at, at)
    for name in outputs:
        lives[name] = (lives[name][0], len(kernels) - 1)
    return lives
