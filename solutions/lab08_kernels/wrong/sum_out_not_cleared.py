# exercise: order_matters
# told: memory is added to that nobody has set
def steady_sum(gpu, values, out):
    """Adds to what is in out."""

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
            parts[cuda.blockIdx.x] = tile[0]

    def of_parts(cuda, parts, out):
        total = out[0]
        for i in range(len(parts)):
            total = total + parts[i]
        out[0] = total

    parts = gpu.array("parts", 4)
    gpu.launch(of_blocks, values, parts, grid=4, block=64)
    gpu.launch(of_parts, parts, out, grid=1, block=1)
