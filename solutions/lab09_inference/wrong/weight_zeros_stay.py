# exercise: int8_product
# told: the weights' zero points are not taken out
def int8_product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu):
    """The layer's outputs as int8."""
    sums = x.int() @ weight.int() + offset
    out = torch.round(sums * multiplier) + out_zero
    return out.clamp(out_zero if relu else -128, 127).to(torch.int8)
