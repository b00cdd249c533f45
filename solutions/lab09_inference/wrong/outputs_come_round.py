# exercise: int8_product
# told: outputs beyond int8 come round at its other end
def int8_product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu):
    """The layer's outputs as int8."""
    sums = x.int() @ weight.int() + offset
    sums = sums - x.int().sum(1, keepdim=True) * torch.tensor(weight_zero)
    out = torch.round(sums * multiplier) + out_zero
    out = out.clamp(min=out_zero) if relu else out
    return ((out.long() + 128) % 256 - 128).to(torch.int8)
