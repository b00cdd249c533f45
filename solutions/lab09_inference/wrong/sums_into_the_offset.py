# exercise: int8_product
# told: Your function modified its input
def int8_product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu):
    """The layer's outputs as int8."""
    offset += 1
    sums = x.int() @ weight.int() + (offset - 1)
    sums = sums - x.int().sum(1, keepdim=True) * torch.tensor(weight_zero)
    out = torch.round(sums * multiplier) + out_zero
    return out.clamp(out_zero if relu else -128, 127).to(torch.int8)
