# exercise: coalesced
# told: threads wait for each other for ever
def transpose(gpu, src, dst):
    """Inner and outer blocks have a barrier of their own, and so have the halves of a block."""
    rows, columns = src.shape

    def turn(cuda, src, dst):
        tile = cuda.shared.array((32, 33), src.dtype)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
        if top + y < rows and left + x < columns:
            tile[y, x] = src[top + y, left + x]
            cuda.syncthreads()
        else:
            cuda.syncthreads()
        if left + y < columns and top + x < rows:
            dst[left + y, top + x] = tile[x, y]

    gpu.launch(turn, src, dst, grid=(-(-columns // 32), -(-rows // 32)), block=(32, 32))
