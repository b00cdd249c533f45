# exercise: coalesced
# told: elements are turned within their tile, and tiles are not
def transpose(gpu, src, dst):
    """Writes to the place in dst that the tile had in src."""
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
            if top + row < columns and left + x < rows:
                dst[top + row, left + x] = tile[x, row]

    grid = (-(-columns // 32), -(-rows // 32))
    gpu.launch(turn, src, dst, grid=grid, block=(32, 8))
