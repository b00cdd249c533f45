# %% mistake="rows_block_of_columns"
# told: power of two
# %% replace
block = next_power_of_2(columns)
# %% by
block = columns


# %% mistake="rows_fp16_sum"
# told: less accurate than sums in fp32
# %% replace
y = e / tl.sum(e, axis=0)
# %% by
y = e / tl.sum(e.to(tl.float16), axis=0)


# %% mistake="rows_no_max"
# told: Your output has NaN, but your kernel did not read any padding.
# %% replace
e = tl.exp(x - tl.max(x, axis=0))
# %% by
e = tl.exp(x)


# %% mistake="rows_one_program"
# told: does not have one program per row
@jit
def row_softmax_kernel(
    x_ptr, y_ptr, rows, columns, x_stride, y_stride, BLOCK: tl.constexpr
):
    """The softmax of one row."""
    for row in range(rows):
        at = tl.arange(0, BLOCK)
        inside = at < columns
        x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=-float("inf"))
        x = x.to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        y = e / tl.sum(e, axis=0)
        tl.store(y_ptr + row * y_stride + at, y, mask=inside)


def row_softmax(x):
    """A new matrix with the softmax of each row of x."""
    rows, columns = x.shape
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    block = next_power_of_2(columns)
    row_softmax_kernel[(1,)](x, y, rows, columns, x.stride(0), y.stride(0), BLOCK=block)
    return y


# %% mistake="rows_other_zero"
# told: A row of your output sums to
# %% replace
x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=-float("inf"))
# %% by
x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0)


# %% mistake="rows_reads_again"
# told: as often as needed
# %% replace
e = tl.exp(x - tl.max(x, axis=0))
# %% by
top = tl.max(x, axis=0)
x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=-float("inf"))
e = tl.exp(x.to(tl.float32) - top)


# %% mistake="rows_stride_is_columns"
# told: reads the padding between rows
# %% replace
row_softmax_kernel[(rows,)](x, y, columns, x.stride(0), y.stride(0), BLOCK=block)
# %% by
row_softmax_kernel[(rows,)](x, y, columns, columns, columns, BLOCK=block)
