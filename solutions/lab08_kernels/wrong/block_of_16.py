# exercise: coalesced
# told: a warp of your block holds several rows of it
def transpose(gpu, src, dst):
    """Blocks of 16 by 16, and a tile with longer rows."""
    rows, columns = src.shape

    def turn(cuda, src, dst):
        tile = cuda.shared.array((16, 17), src.dtype)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = 16 * cuda.blockIdx.x, 16 * cuda.blockIdx.y
        for row in range(y, 16, 16):
            if top + row < rows and left + x < columns:
                tile[row, x] = src[top + row, left + x]
        cuda.syncthreads()
        for row in range(y, 16, 16):
            if left + row < columns and top + x < rows:
                dst[left + row, top + x] = tile[x, row]

    grid = (-(-columns // 16), -(-rows // 16))
    gpu.launch(turn, src, dst, grid=grid, block=(16, 16))
