# exercise: int8_product
# told: the bias is rounded in steps of x, and not in steps of the sums
def ahead(weight, bias, *, x_scale, x_zero, weight_scale, weight_zero, out_scale):
    """Offset and multiplier of each column."""
    zeros = torch.tensor(weight_zero)
    step = x_scale * torch.tensor(weight_scale, dtype=torch.float64)
    columns = weight.long().sum(0)
    offset = torch.round(bias / x_scale).long() - x_zero * columns
    offset = offset + len(weight) * x_zero * zeros
    return offset.to(torch.int32), step / out_scale
