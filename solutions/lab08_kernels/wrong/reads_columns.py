# exercise: coalesced
# told: reads of src are scattered
def transpose(gpu, src, dst):
    """Turns while it reads."""
    rows, columns = src.shape

    def turn(cuda, src, dst):
        tile = cuda.shared.array((32, 33), src.dtype)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
        for row in range(y, 32, 8):
            if top + x < rows and left + row < columns:
                tile[row, x] = src[top + x, left + row]
        cuda.syncthreads()
        for row in range(y, 32, 8):
            if left + row < columns and top + x < rows:
                dst[left + row, top + x] = tile[row, x]

    grid = (-(-columns // 32), -(-rows // 32))
    gpu.launch(turn, src, dst, grid=grid, block=(32, 8))
