# exercise: coalesced
# told: two threads write one element of shared memory
def transpose(gpu, src, dst):
    """All rows of threads share one row of the tile."""
    rows, columns = src.shape

    def turn(cuda, src, dst):
        tile = cuda.shared.array(33, src.dtype)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
        for row in range(y, 32, 8):
            if top + row < rows and left + x < columns:
                tile[x] = src[top + row, left + x]
                dst[left + x, top + row] = 0.0

    gpu.launch(turn, src, dst, grid=(-(-columns // 32), -(-rows // 32)), block=(32, 8))
