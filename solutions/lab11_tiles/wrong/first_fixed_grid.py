# exercise: scale_shift_relu
# told: elements of the output are never written
def scale_shift_relu(x, a, b):
    """A new vector, relu(a * x + b)."""
    y = torch.empty_like(x)
    n = x.numel()
    grid = (1,)
    scale_shift_relu_kernel[grid](x, y, n, a, b, BLOCK=1024)
    return y
