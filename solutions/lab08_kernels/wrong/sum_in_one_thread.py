# exercise: order_matters
# told: one thread adds too many values, one after the other
def steady_sum(gpu, values, out):
    """Each block has one thread that adds."""

    def of_blocks(cuda, values, parts):
        own = 0.0
        for i in range(cuda.blockIdx.x, len(values), 4):
            own = own + values[i]
        parts[cuda.blockIdx.x] = own

    def of_parts(cuda, parts, out):
        total = parts[0]
        for i in range(1, len(parts)):
            total = total + parts[i]
        out[0] = total

    parts = gpu.array("parts", 4)
    gpu.launch(of_blocks, values, parts, grid=4, block=1)
    gpu.launch(of_parts, parts, out, grid=1, block=1)
