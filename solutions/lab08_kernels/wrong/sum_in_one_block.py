# exercise: order_matters
# told: too few blocks share the work
def steady_sum(gpu, values, out):
    """One block does it all."""

    def of_blocks(cuda, values, parts):
        x, first = cuda.threadIdx.x, cuda.grid(1)
        tile = cuda.shared.array(64)
        own = 0.0
        for i in range(first, len(values), cuda.gridsize(1)):
            own = own + values[i]
        tile[x] = own
        for half in (32, 16, 8, 4, 2, 1):
            cuda.syncthreads()
            if x < half:
                tile[x] = tile[x] + tile[x + half]
        if x == 0:
            parts[0] = tile[0]

    gpu.launch(of_blocks, values, out, grid=1, block=64)
