# exercise: coalesced
# told: some elements of dst are never written
def transpose(gpu, src, dst):
    """Leaves out the last tiles."""
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
            if left + row < columns and top + x < rows:
                dst[left + row, top + x] = tile[x, row]

    grid = (columns // 32 or 1, rows // 32 or 1)
    gpu.launch(turn, src, dst, grid=grid, block=(32, 8))
