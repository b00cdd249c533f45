# exercise: coalesced
# told: writes of dst are scattered
def transpose(gpu, src, dst):
    """Through the tile, and then down a column."""
    rows, columns = src.shape

    def turn(cuda, src, dst):
        tile = cuda.shared.array((32, 33), src.dtype)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
        for row in range(y, 32, 8):
            if top + row < rows and left + x < columns:
                tile[row, x] = src[top + row, left + x]
        cuda.syncthreads()
        for row in range(y, 32, 8):
            if top + row < rows and left + x < columns:
                dst[left + x, top + row] = tile[row, x]

    grid = (-(-columns // 32), -(-rows // 32))
    gpu.launch(turn, src, dst, grid=grid, block=(32, 8))
