# %% mistake="barriers_in_branches"
# told: threads wait for each other forever
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


# %% mistake="block_of_16"
# told: in your kernel, threads of a warp access the same bank of shared memory
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


# %% mistake="both_scattered"
# told: your kernel scatters both its reads of src and its writes of dst
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


# %% mistake="elements_stay"
# told: in your kernel, elements of dst come from the wrong positions in src
# %% replace
dst[left + row, top + x] = tile[x, row]
# %% by
dst[left + row, top + x] = tile[row, x]


# %% mistake="grid_by_heart"
# told: your grid does not cover all of a larger matrix
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


# %% mistake="launches_nothing"
# told: no kernel was launched
def transpose(gpu, src, dst):
    """Defines a kernel, and leaves it at that."""

    def turn(cuda, src, dst):
        x, y = cuda.grid(2)
        dst[x, y] = src[y, x]


# %% mistake="no_barrier"
# told: shared memory is read while another thread writes it
# %% replace
cuda.syncthreads()
# %% by


# %% mistake="no_padding"
# told: in your tile, elements of a column are in the same banks of shared memory
# %% replace
tile = cuda.shared.array((32, 33), src.dtype)
# %% by
tile = cuda.shared.array((32, 32), src.dtype)


# %% mistake="one_row_for_all"
# told: two threads write the same element of shared memory
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


# %% mistake="reads_before_the_edge"
# told: your kernel reads an element of shared memory before it is written
# %% replace
if top + row < rows and left + x < columns:
    tile[row, x] = src[top + row, left + x]
# %% by
if top + row < rows - 1 and left + x < columns:
    tile[row, x] = src[top + row, left + x]


# %% mistake="reads_columns"
# told: your kernel scatters its reads of src
# %% replace
if top + row < rows and left + x < columns:
    tile[row, x] = src[top + row, left + x]
# %% by
if top + x < rows and left + row < columns:
    tile[row, x] = src[top + x, left + row]
# %% replace
dst[left + row, top + x] = tile[x, row]
# %% by
dst[left + row, top + x] = tile[row, x]


# %% mistake="rounds_the_grid_down"
# told: your kernel never writes some elements of dst
# %% replace
grid = (-(-columns // 32), -(-rows // 32))
# %% by
grid = (columns // 32 or 1, rows // 32 or 1)


# %% mistake="tile_of_float32"
# told: your kernel rounds elements in shared memory
# %% replace
tile = cuda.shared.array((32, 33), src.dtype)
# %% by
tile = cuda.shared.array((32, 33), "float32")


# %% mistake="tiles_stay"
# told: your kernel transposes elements within their tiles, but it does not transpose the tiles
# %% replace
if left + row < columns and top + x < rows:
    dst[left + row, top + x] = tile[x, row]
# %% by
if top + row < columns and left + x < rows:
    dst[top + row, left + x] = tile[x, row]


# %% mistake="writes_columns"
# told: your kernel scatters its writes of dst
# %% replace
if left + row < columns and top + x < rows:
    dst[left + row, top + x] = tile[x, row]
# %% by
if top + row < rows and left + x < columns:
    dst[left + x, top + row] = tile[row, x]
