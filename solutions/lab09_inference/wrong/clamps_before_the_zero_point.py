# exercise: int8_product
# told: outputs come round where a zero point is added
def int8_product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu):
    """The layer's outputs as int8."""
    sums = x.int() @ weight.int() + offset
    sums = sums - x.int().sum(1, keepdim=True) * torch.tensor(weight_zero)
    out = torch.round(sums * multiplier).clamp(0 if relu else -128, 127) + out_zero
    return out.to(torch.int64).to(torch.int8)
