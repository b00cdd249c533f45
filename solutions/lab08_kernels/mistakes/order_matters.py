# %% mistake="sum_adds_atomically"
# told: in your program, the order of additions depends on the order in which threads arrive
def steady_sum(gpu, values, out):
    """Blocks add their sums as they come."""

    def cleared(cuda, out):
        out[0] = 0.0

    def of_blocks(cuda, values, parts):
        x, first = cuda.threadIdx.x, cuda.grid(1)
        tile = cuda.shared.array(64)
        own = 0.0
        for i in range(first, len(values), cuda.gridsize(1)):
            own = own + values[i]
        tile[x] = own
        for half in (32, 16, 8, 4, 2, 1):
            cuda.syncthreads()
            if x < half:
                tile[x] = tile[x] + tile[x + half]
        if x == 0:
            cuda.atomic.add(parts, 0, tile[0])

    gpu.launch(cleared, out, grid=1, block=1)
    gpu.launch(of_blocks, values, out, grid=4, block=64)


# %% mistake="sum_all_write"
# told: several threads write the same element
def steady_sum(gpu, values, out):
    """Each block writes its sum to out."""

    def of_blocks(cuda, values, parts):
        x, first = cuda.threadIdx.x, cuda.grid(1)
        tile = cuda.shared.array(64)
        own = 0.0
        for i in range(first, len(values), cuda.gridsize(1)):
            own = own + values[i]
        tile[x] = own
        for half in (32, 16, 8, 4, 2, 1):
            cuda.syncthreads()
            if x < half:
                tile[x] = tile[x] + tile[x + half]
        if x == 0:
            parts[0] = tile[0]

    gpu.launch(of_blocks, values, out, grid=4, block=64)


# %% mistake="sum_begins_with_one"
# told: your sum includes a number that is not one of the values
# %% replace
x, first = cuda.threadIdx.x, cuda.grid(1)
# %% by
x = cuda.threadIdx.x
# %% replace
own = 0.0
for i in range(first, len(values), cuda.gridsize(1)):
    own = own + values[i]
# %% by
own = 1.0
for i in range(cuda.grid(1), len(values), 256):
    own = own + values[i]


# %% mistake="sum_counts_twice"
# told: your sum contains some values more than once
# %% replace
x, first = cuda.threadIdx.x, cuda.grid(1)
# %% by
x = cuda.threadIdx.x
# %% replace
for i in range(first, len(values), cuda.gridsize(1)):
    own = own + values[i]
# %% by
for i in range(x, len(values), 64):
    own = own + values[i]


# %% mistake="sum_in_one_block"
# told: in your program, too few blocks share the work
def steady_sum(gpu, values, out):
    """One block does it all."""

    def of_blocks(cuda, values, parts):
        x, first = cuda.threadIdx.x, cuda.grid(1)
        tile = cuda.shared.array(64)
        own = 0.0
        for i in range(first, len(values), cuda.gridsize(1)):
            own = own + values[i]
        tile[x] = own
        for half in (32, 16, 8, 4, 2, 1):
            cuda.syncthreads()
            if x < half:
                tile[x] = tile[x] + tile[x + half]
        if x == 0:
            parts[0] = tile[0]

    gpu.launch(of_blocks, values, out, grid=1, block=64)


# %% mistake="sum_in_one_launch"
# told: a thread reads memory that another thread writes in the same launch
def steady_sum(gpu, values, out):
    """Block 0 adds the parts in the same launch."""

    def of_blocks(cuda, values, parts, out):
        x, first = cuda.threadIdx.x, cuda.grid(1)
        tile = cuda.shared.array(64)
        own = 0.0
        for i in range(first, len(values), cuda.gridsize(1)):
            own = own + values[i]
        tile[x] = own
        for half in (32, 16, 8, 4, 2, 1):
            cuda.syncthreads()
            if x < half:
                tile[x] = tile[x] + tile[x + half]
        if x == 0:
            parts[cuda.blockIdx.x] = tile[0]
        cuda.syncthreads()
        if cuda.grid(1) == 0:
            out[0] = parts[0] + parts[1] + parts[2] + parts[3]

    parts = gpu.array("parts", 4)
    gpu.launch(of_blocks, values, parts, out, grid=4, block=64)


# %% mistake="sum_in_one_thread"
# told: in your program, one thread adds too many values, one after the other
def steady_sum(gpu, values, out):
    """Each block has one thread that adds."""

    def of_blocks(cuda, values, parts):
        own = 0.0
        for i in range(cuda.blockIdx.x, len(values), 4):
            own = own + values[i]
        parts[cuda.blockIdx.x] = own

    def of_parts(cuda, parts, out):
        total = parts[0]
        for i in range(1, len(parts)):
            total = total + parts[i]
        out[0] = total

    parts = gpu.array("parts", 4)
    gpu.launch(of_blocks, values, parts, grid=4, block=1)
    gpu.launch(of_parts, parts, out, grid=1, block=1)


# %% mistake="sum_loses_the_tail"
# told: your sum leaves out some values
# %% replace
for i in range(first, len(values), cuda.gridsize(1)):
    own = own + values[i]
# %% by
for i in range(first, len(values) // 256 * 256 or 1, 256):
    own = own + values[i]


# %% mistake="sum_out_not_cleared"
# told: your sum includes memory that was never initialized
# %% replace
total = parts[0]
for i in range(1, len(parts)):
    total = total + parts[i]
# %% by
total = out[0]
for i in range(len(parts)):
    total = total + parts[i]


# %% mistake="sum_without_barriers"
# told: shared memory is read while another thread writes it
# %% replace
cuda.syncthreads()
# %% by


# %% mistake="sums_in_float16"
# told: your function always rounds sums in half precision (float16)
# %% replace
total = rounded(total + value, fmt)
# %% by
total = rounded(total + value, "float16")


# %% mistake="sums_in_float32"
# told: your function always rounds sums in single precision (float32)
# %% replace
total = rounded(total + value, fmt)
# %% by
total = rounded(total + value, "float32")


# %% mistake="sums_never_rounded"
# told: your function does not round sums after every addition
# like: sums_rounded_once
from itertools import permutations


def range_of_sums(values, fmt):
    """Nothing is rounded."""
    sums = {sum(order) for order in permutations(values)}
    return min(sums), max(sums)


# %% mistake="sums_of_a_set"
# told: your function adds several equal values only once
# %% replace
sums = {added(order) for order in permutations(values)}
# %% by
sums = {added(order) for order in permutations(set(values))}


# %% mistake="sums_of_sorted"
# told: your function tries only sorted orders
# %% replace
sums = {added(order) for order in permutations(values)}
# %% by
sums = added(sorted(values)), added(sorted(values, reverse=True))


# %% mistake="sums_one_order"
# told: your function tries only one order
# %% replace
sums = {added(order) for order in permutations(values)}
return min(sums), max(sums)
# %% by
return added(values), added(values)


# %% mistake="sums_rounded_once"
# told: your function does not round sums after every addition
from itertools import permutations


def range_of_sums(values, fmt):
    """Python adds, the end is rounded."""
    sums = {rounded(sum(order), fmt) for order in permutations(values)}
    return min(sums), max(sums)


# %% mistake="sums_two_orders"
# told: your function tries only two orders
# %% replace
sums = {added(order) for order in permutations(values)}
# %% by
sums = added(values), added(values[::-1])
