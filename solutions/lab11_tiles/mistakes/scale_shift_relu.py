# %% mistake="first_fixed_grid"
# told: Your kernel never writes some elements of the output.
# %% replace
grid = (cdiv(n, 1024),)
# %% by
grid = (1,)


# %% mistake="first_grid_rounded_down"
# told: the grid is rounded down
# %% replace
grid = (cdiv(n, 1024),)
# %% by
grid = (max(1, n // 1024),)


# %% mistake="first_host_computes"
# told: your code raised
# %% replace
return y
# %% by
return torch.relu(a * x + b)


# %% mistake="first_in_place"
# told: does not return a new tensor
# %% replace
y = torch.empty_like(x)
# %% by
y = x


# %% mistake="first_mask_on_load"
# told: writes past the end of the output
# %% replace
tl.store(y_ptr + offsets, tl.maximum(a * x + b, 0.0), mask=inside)
# %% by
tl.store(y_ptr + offsets, tl.maximum(a * x + b, 0.0))


# %% mistake="first_no_mask"
# told: reads past the end of `x`
@jit
def scale_shift_relu_kernel(x_ptr, y_ptr, n, a, b, BLOCK: tl.constexpr):
    """One block of relu(a * x + b)."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(y_ptr + offsets, tl.maximum(a * x + b, 0.0))


# %% mistake="first_no_relu"
# told: Your output has negative values.
# %% replace
tl.store(y_ptr + offsets, tl.maximum(a * x + b, 0.0), mask=inside)
# %% by
tl.store(y_ptr + offsets, a * x + b, mask=inside)


# %% mistake="first_one_program"
# told: too few programs
# %% replace
grid = (cdiv(n, 1024),)
scale_shift_relu_kernel[grid](x, y, n, a, b, BLOCK=1024)
# %% by
grid = (1,)
scale_shift_relu_kernel[grid](x, y, n, a, b, BLOCK=next_power_of_2(n))


# %% mistake="first_reads_twice"
# told: Your kernel reads `x` 2 times as often as needed
# %% replace
tl.store(y_ptr + offsets, tl.maximum(a * x + b, 0.0), mask=inside)
# %% by
tl.store(
    y_ptr + offsets,
    tl.maximum(a * x + b, 0.0 * tl.load(x_ptr + offsets, mask=inside)),
    mask=inside,
)


# %% mistake="first_three_kernels"
# told: Your additional launches move additional bytes
@jit
def step_kernel(x_ptr, y_ptr, n, a, b, low, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.maximum(a * x + b, low), mask=inside)


def scale_shift_relu(x, a, b):
    """Three launches, one a step."""
    none = -float("inf")
    for scale, shift, low in ((a, 0.0, none), (1.0, b, none), (1.0, 0.0, 0.0)):
        y = torch.empty_like(x)
        n = x.numel()
        step_kernel[(cdiv(n, 1024),)](x, y, n, scale, shift, low, BLOCK=1024)
        x = y
    return y


# %% mistake="first_undefined"
# told: undefined
# %% replace
x = tl.load(x_ptr + offsets, mask=inside)
# %% by
x = tl.load(x_ptr + offsets, mask=offsets < n - 1)
