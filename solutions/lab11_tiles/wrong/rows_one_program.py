# exercise: row_softmax
# told: not one program a row
@jit
def row_softmax_kernel(x_ptr, y_ptr, rows, columns, x_stride, y_stride, BLOCK: tl.constexpr):
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
