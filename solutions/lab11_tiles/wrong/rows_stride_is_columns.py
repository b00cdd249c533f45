# exercise: row_softmax
# told: reads the padding between rows
def row_softmax(x):
    """A new matrix with the softmax of each row of x."""
    rows, columns = x.shape
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    block = next_power_of_2(columns)
    row_softmax_kernel[(rows,)](x, y, columns, columns, columns, BLOCK=block)
    return y
