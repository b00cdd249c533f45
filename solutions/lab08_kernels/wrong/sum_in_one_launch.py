# exercise: order_matters
# told: a thread reads from memory what another one writes in the same launch
def steady_sum(gpu, values, out):
    """Block 0 adds the parts in the same launch."""

    def of_blocks(cuda, values, parts, out):
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
        cuda.syncthreads()
        if cuda.grid(1) == 0:
            out[0] = parts[0] + parts[1] + parts[2] + parts[3]

    parts = gpu.array("parts", 4)
    gpu.launch(of_blocks, values, parts, out, grid=4, block=64)
