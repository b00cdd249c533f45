# exercise: coalesced
# told: elements are rounded in shared memory
def transpose(gpu, src, dst):
    """A tile of 4-byte elements for all."""
    rows, columns = src.shape

    def turn(cuda, src, dst):
        tile = cuda.shared.array((32, 33), "float32")
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
        for row in range(y, 32, 8):
            if top + row < rows and left + x < columns:
                tile[row, x] = src[top + row, left + x]
        cuda.syncthreads()
        for row in range(y, 32, 8):
            if left + row < columns and top + x < rows:
                dst[left + row, top + x] = tile[x, row]

    grid = (-(-columns // 32), -(-rows // 32))
    gpu.launch(turn, src, dst, grid=grid, block=(32, 8))
