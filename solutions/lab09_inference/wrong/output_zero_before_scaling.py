# exercise: int8_product
# told: the output's zero point is not added at the end
def int8_product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu):
    """The layer's outputs as int8."""
    sums = x.int() @ weight.int() + offset
    sums = sums - x.int().sum(1, keepdim=True) * torch.tensor(weight_zero)
    out = torch.round((sums + out_zero) * multiplier)
    return out.clamp(out_zero if relu else -128, 127).to(torch.int8)
