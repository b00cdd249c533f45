# exercise: memory_plan
# told: a tensor is given away before its last reader runs
def lifetimes(kernels, outputs):
    """First and last kernel of each tensor."""
    lives = {}
    for at, kernel in enumerate(kernels):
        for name in kernel["reads"]:
            first = lives[name][0] if name in lives else 0
            lives[name] = (first, max(0, at - 1))
        lives[kernel["writes"]] = (at, at)
    for name in outputs:
        lives[name] = (lives[name][0], len(kernels) - 1)
    return lives
