# exercise: order_matters
# told: the order of additions is the order of arrival
def steady_sum(gpu, values, out):
    """Blocks add their sums as they come."""

    def cleared(cuda, out):
        out[0] = 0.0

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
            cuda.atomic.add(parts, 0, tile[0])

    gpu.launch(cleared, out, grid=1, block=1)
    gpu.launch(of_blocks, values, out, grid=4, block=64)
