# exercise: group_int4
# told: Integers are rounded down
def quantize(weight, group):
    """(packed, scale, zero) of a weight, in groups of a row's neighbours."""
    rows, columns = weight.shape
    groups = F.pad(weight, (0, -columns % group)).unflatten(1, (-1, group))
    # The padding is 0, and 0 counts in every group anyway.
    lowest, highest = groups.amin(2), groups.amax(2)
    lowest, highest = lowest.clamp(max=0), highest.clamp(min=0)
    scale = ((highest - lowest) / 15).half()
    zero = (-lowest / scale.float()).round()
    integers = (groups / scale.float()[:, :, None]).floor() + zero[:, :, None]
    integers = integers.clamp(0, 15).flatten(1)[:, :columns]
    pairs = F.pad(integers, (0, columns % 2)).to(torch.uint8).unflatten(1, (-1, 2))
    return pairs[:, :, 0] | pairs[:, :, 1] << 4, scale, zero.to(torch.uint8)


def dequantize(packed, scale, zero, columns, group):
    """The weights in fp32, rows × columns."""
    pairs = torch.stack([packed & 15, packed >> 4], 2)
    integers = pairs.flatten(1)[:, :columns].float()
    of = torch.arange(columns) // group
    return (integers - zero.float()[:, of]) * scale.float()[:, of]


def product(x, packed, scale, zero, columns, group):
    """x @ weight.T, in fp32."""
    return x @ dequantize(packed, scale, zero, columns, group).T


def bytes_per_weight(group, scale_bits, zero_bits):
    """Bytes that a weight takes, with its share of what its group stores."""
    return (4 + (scale_bits + zero_bits) / group) / 8
