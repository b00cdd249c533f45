# exercise: long_rows
# told: A row sums to
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
        new_top = tl.maximum(top, tl.max(x, axis=0))
        total = total + tl.sum(tl.exp(x - new_top), axis=0)
        top = new_top
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x_at = x_ptr + row * x_stride + at
        x = tl.load(x_at, mask=at < columns, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - top) / total
        tl.store(y_ptr + row * y_stride + at, y, mask=at < columns)
