# exercise: column_sums
# told: read or written more than once
@jit
def column_sums_kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Add the sums of one tile to the output."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    x_mask = (rows[:, None] < M) & (columns[None, :] < N)
    x_at = x_ptr + rows[:, None] * N + columns[None, :]
    x = tl.load(x_at, mask=x_mask, other=0.0).to(tl.float32)
    tl.atomic_add(y_ptr + columns[None, :] + 0 * rows[:, None], x, mask=x_mask)
