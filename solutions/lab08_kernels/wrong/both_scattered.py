# exercise: coalesced
# told: both reads of src and writes of dst are scattered
def transpose(gpu, src, dst):
    """Neighbours in a warp are rows on both sides: blocks are 1 wide."""
    rows, columns = src.shape

    def turn(cuda, src, dst):
        y = 32 * cuda.blockIdx.y + cuda.threadIdx.y
        for x in range(columns):
            if x % 2 == 0 and y < rows:
                dst[x, y] = src[y, x]
        for x in range(columns):
            if x % 2 and y < rows:
                dst[x, y] = src[y, x]

    def again(cuda, src, dst):
        x = 32 * cuda.blockIdx.x + cuda.threadIdx.x
        for y in range(rows):
            if x < columns:
                dst[x, y] = src[y, x]

    gpu.launch(turn, src, dst, grid=(1, -(-rows // 32)), block=(1, 32))
    gpu.launch(again, src, dst, grid=-(-columns // 32), block=32)
