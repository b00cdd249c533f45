# exercise: row_softmax
# told: power of two
def row_softmax(x):
    """A new matrix with the softmax of each row of x."""
    rows, columns = x.shape
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    block = columns
    row_softmax_kernel[(rows,)](x, y, columns, x.stride(0), y.stride(0), BLOCK=block)
    return y
