# exercise: scale_shift_relu
# told: reads past the end of x
@jit
def scale_shift_relu_kernel(x_ptr, y_ptr, n, a, b, BLOCK: tl.constexpr):
    """One block of relu(a * x + b)."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(y_ptr + offsets, tl.maximum(a * x + b, 0.0))
