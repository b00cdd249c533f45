# %% mistake="long_no_rescale"
# told: A row of your output sums to
# %% replace
total = total * tl.exp(top - new_top) + tl.sum(tl.exp(x - new_top), axis=0)
# %% by
total = total + tl.sum(tl.exp(x - new_top), axis=0)


# %% mistake="long_one_block"
# told: more than a few blocks
# %% replace
long_rows_kernel[(rows,)](x, y, columns, *strides, BLOCK=BLOCK)
# %% by
long_rows_kernel[(rows,)](x, y, columns, *strides, BLOCK=next_power_of_2(columns))


# %% mistake="long_three_passes"
# told: Your kernel reads `x` three times.
@jit
def long_rows_kernel(x_ptr, y_ptr, columns, x_stride, y_stride, BLOCK: tl.constexpr):
    """The softmax of one row, block by block."""
    row = tl.program_id(0)
    top = tl.full((1,), -float("inf"), tl.float32)
    total = tl.zeros((1,), tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x_at = x_ptr + row * x_stride + at
        x = tl.load(x_at, mask=at < columns, other=-float("inf")).to(tl.float32)
        top = tl.maximum(top, tl.max(x, axis=0))
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x_at = x_ptr + row * x_stride + at
        x = tl.load(x_at, mask=at < columns, other=-float("inf")).to(tl.float32)
        total = total + tl.sum(tl.exp(x - top), axis=0)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x_at = x_ptr + row * x_stride + at
        x = tl.load(x_at, mask=at < columns, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - top) / total
        tl.store(y_ptr + row * y_stride + at, y, mask=at < columns)
