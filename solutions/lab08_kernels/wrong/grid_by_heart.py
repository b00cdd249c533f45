# exercise: coalesced
# told: the grid does not reach all of a larger matrix
def transpose(gpu, src, dst):
    """Four blocks, whatever the size."""

    def turn(cuda, src, dst):
        rows, columns = src.shape
        tile = cuda.shared.array((32, 33), src.dtype)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
        for row in range(y, 32, 8):
            if top + row < rows and left + x < columns:
                tile[row, x] = src[top + row, left + x]
        cuda.syncthreads()
        for row in range(y, 32, 8):
            if left + row < columns and top + x < rows:
                dst[left + row, top + x] = tile[x, row]

    gpu.launch(turn, src, dst, grid=(2, 2), block=(32, 8))
