# exercise: int8_product
# told: the input's zero point is not taken out
def ahead(weight, bias, *, x_scale, x_zero, weight_scale, weight_zero, out_scale):
    """Offset and multiplier of each column."""
    step = x_scale * torch.tensor(weight_scale, dtype=torch.float64)
    offset = torch.round(bias / step).long()
    return offset.to(torch.int32), step / out_scale
