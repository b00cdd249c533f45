# exercise: calibrate
# told: values beyond the grid are not brought to its ends
def integers(values, scale, zero_point, *, axis, symmetric):
    """The nearest integers on the grid."""
    scale, zero = torch.as_tensor(scale), torch.as_tensor(zero_point)
    if axis is not None:
        shape = [1] * values.ndim
        shape[axis] = -1
        scale, zero = scale.view(shape), zero.view(shape)
    steps = torch.round(values / scale) + zero
    return steps.long()
