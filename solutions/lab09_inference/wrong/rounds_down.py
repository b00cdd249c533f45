# exercise: calibrate
# told: values are cut off or rounded late, and not to the nearest
def integers(values, scale, zero_point, *, axis, symmetric):
    """The nearest integers on the grid."""
    scale, zero = torch.as_tensor(scale), torch.as_tensor(zero_point)
    if axis is not None:
        shape = [1] * values.ndim
        shape[axis] = -1
        scale, zero = scale.view(shape), zero.view(shape)
    steps = torch.floor(values / scale) + zero
    return steps.clamp(-127 if symmetric else -128, 127).to(torch.int8)
