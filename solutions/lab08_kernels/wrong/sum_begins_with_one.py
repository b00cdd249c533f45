# exercise: order_matters
# told: a number is in the sum that is none of the values
def steady_sum(gpu, values, out):
    """Every thread begins with 1, as a product would."""

    def of_blocks(cuda, values, parts):
        x = cuda.threadIdx.x
        tile = cuda.shared.array(64)
        own = 1.0
        for i in range(cuda.grid(1), len(values), 256):
            own = own + values[i]
        tile[x] = own
        for half in (32, 16, 8, 4, 2, 1):
            cuda.syncthreads()
            if x < half:
                tile[x] = tile[x] + tile[x + half]
        if x == 0:
            parts[cuda.blockIdx.x] = tile[0]

    def of_parts(cuda, parts, out):
        total = parts[0]
        for i in range(1, len(parts)):
            total = total + parts[i]
        out[0] = total

    parts = gpu.array("parts", 4)
    gpu.launch(of_blocks, values, parts, grid=4, block=64)
    gpu.launch(of_parts, parts, out, grid=1, block=1)
