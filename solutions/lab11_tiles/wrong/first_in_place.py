# exercise: scale_shift_relu
# told: returns no new tensor
def scale_shift_relu(x, a, b):
    """A new vector, relu(a * x + b)."""
    y = x
    n = x.numel()
    grid = (cdiv(n, 1024),)
    scale_shift_relu_kernel[grid](x, y, n, a, b, BLOCK=1024)
    return y
