# exercise: long_rows
# told: more than a few blocks
def long_rows(x, BLOCK):
    """A new matrix with the softmax of each row of x."""
    rows, columns = x.shape
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    strides = (x.stride(0), y.stride(0))
    long_rows_kernel[(rows,)](x, y, columns, *strides, BLOCK=next_power_of_2(columns))
    return y
