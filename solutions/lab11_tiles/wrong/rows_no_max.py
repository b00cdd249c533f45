# exercise: row_softmax
# told: no padding was read
@jit
def row_softmax_kernel(x_ptr, y_ptr, columns, x_stride, y_stride, BLOCK: tl.constexpr):
    """The softmax of one row."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=-float("inf"))
    x = x.to(tl.float32)
    e = tl.exp(x)
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * y_stride + at, y, mask=inside)
