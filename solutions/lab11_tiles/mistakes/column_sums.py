# %% mistake="columns_every_element"
# told: Your kernels read or write the output more than once.
# %% replace
tl.atomic_add(y_ptr + columns, tl.sum(x, axis=0), mask=columns < N)
# %% by
tl.atomic_add(y_ptr + columns[None, :] + 0 * rows[:, None], x, mask=x_mask)


# %% mistake="columns_first_tile"
# told: Your output contains the sums of only one tile of rows.
# %% replace
tl.atomic_add(y_ptr + columns, tl.sum(x, axis=0), mask=columns < N)
# %% by
mine = (columns < N) & (tl.program_id(0) == 0)
tl.atomic_add(y_ptr + columns, tl.sum(x, axis=0), mask=mine)


# %% mistake="columns_fp16_sum"
# told: less accurate than sums in fp32
# %% replace
x = tl.load(x_at, mask=x_mask, other=0.0).to(tl.float32)
tl.atomic_add(y_ptr + columns, tl.sum(x, axis=0), mask=columns < N)
# %% by
x = tl.load(x_at, mask=x_mask, other=0.0)
tl.atomic_add(y_ptr + columns, tl.sum(x, axis=0).to(tl.float32), mask=columns < N)


# %% mistake="columns_grid_rounded_down"
# told: Your sums leave out the last rows
# %% replace
column_sums_kernel[(cdiv(M, BM), cdiv(N, BN))](x, y, M, N, BM=BM, BN=BN)
# %% by
column_sums_kernel[(max(M // BM, 1), cdiv(N, BN))](x, y, M, N, BM=BM, BN=BN)


# %% mistake="columns_no_mask"
# told: reads past the end of `x`
# %% replace
x_mask = (rows[:, None] < M) & (columns[None, :] < N)
# %% by
# %% replace
x = tl.load(x_at, mask=x_mask, other=0.0).to(tl.float32)
# %% by
x = tl.load(x_at).to(tl.float32)


# %% mistake="columns_one_program"
# told: A program of your kernel sums more than one tile.
@jit
def column_sums_kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """The sums of BN columns."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), tl.float32)
    for first in range(0, M, BM):
        rows = first + tl.arange(0, BM)
        x_mask = (rows[:, None] < M) & (columns[None, :] < N)
        x_at = x_ptr + rows[:, None] * N + columns[None, :]
        x = tl.load(x_at, mask=x_mask, other=0.0).to(tl.float32)
        total += tl.sum(x, axis=0)
    tl.store(y_ptr + columns, total, mask=columns < N)


def column_sums(x, BM, BN):
    """A new vector with the sum of each column of x."""
    M, N = x.shape
    y = torch.zeros(N, dtype=torch.float32, device=x.device)
    column_sums_kernel[(cdiv(N, BN),)](x, y, M, N, BM=BM, BN=BN)
    return y


# %% mistake="columns_race"
# told: In your kernel, several programs or lanes access the same element.
# %% replace
tl.atomic_add(y_ptr + columns, tl.sum(x, axis=0), mask=columns < N)
# %% by
inside = columns < N
y = tl.load(y_ptr + columns, mask=inside, other=0.0)
tl.store(y_ptr + columns, y + tl.sum(x, axis=0), mask=inside)


# %% mistake="columns_undefined"
# told: Your kernel adds to memory that was never set
# %% replace
y = torch.zeros(N, dtype=torch.float32, device=x.device)
# %% by
y = torch.empty(N, dtype=torch.float32, device=x.device)
