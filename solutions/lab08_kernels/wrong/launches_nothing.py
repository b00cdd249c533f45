# exercise: coalesced
# told: nothing is launched
def transpose(gpu, src, dst):
    """Defines a kernel, and leaves it at that."""

    def turn(cuda, src, dst):
        x, y = cuda.grid(2)
        dst[x, y] = src[y, x]
