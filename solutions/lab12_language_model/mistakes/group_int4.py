# %% mistake="int4_bits_for_bytes"
# told: Your bytes per weight are wrong.
# %% replace
return (4 + (scale_bits + zero_bits) / group) / 8
# %% by
return 4 + (scale_bits + zero_bits) / group


# %% mistake="int4_byte_each"
# told: Your function stores each weight in its own byte
# %% replace
return pairs[:, :, 0] | pairs[:, :, 1] << 4, scale, zero.to(torch.uint8)
# %% by
return pairs.flatten(1), scale, zero.to(torch.uint8)


# %% mistake="int4_first_group"
# told: Your function uses the first group
# %% replace
of = torch.arange(columns) // group
# %% by
of = torch.zeros(columns, dtype=torch.long)


# %% mistake="int4_high_first"
# told: Your function exchanges the two halves of a byte
# %% replace
return pairs[:, :, 0] | pairs[:, :, 1] << 4, scale, zero.to(torch.uint8)
# %% by
return pairs[:, :, 1] | pairs[:, :, 0] << 4, scale, zero.to(torch.uint8)
# %% replace
pairs = torch.stack([packed & 15, packed >> 4], 2)
# %% by
pairs = torch.stack([packed >> 4, packed & 15], 2)


# %% mistake="int4_no_zero_point"
# told: Your function does not subtract the zero point
# %% replace
return (integers - zero.float()[:, of]) * scale.float()[:, of]
# %% by
return integers * scale.float()[:, of]


# %% mistake="int4_not_transposed"
# told: `product` has the wrong shape
# %% replace
return x @ dequantize(packed, scale, zero, columns, group).T
# %% by
return dequantize(packed, scale, zero, columns, group) @ x.T


# %% mistake="int4_ragged_lost"
# told: `scale` has too few columns
# %% replace
rows, columns = weight.shape
groups = F.pad(weight, (0, -columns % group)).unflatten(1, (-1, group))
# %% by
columns = weight.shape[1]
group = min(group, columns)
groups = weight[:, : columns // group * group].unflatten(1, (-1, group))
# %% replace
integers = integers.clamp(0, 15).flatten(1)[:, :columns]
# %% by
integers = integers.clamp(0, 15).flatten(1)
integers = F.pad(integers, (0, columns - integers.shape[1]))


# %% mistake="int4_rounded_down"
# told: Your function rounds the integers down
# %% replace
integers = (groups / scale.float()[:, :, None]).round() + zero[:, :, None]
# %% by
integers = (groups / scale.float()[:, :, None]).floor() + zero[:, :, None]


# %% mistake="int4_scale_fp32"
# told: `scale` has the wrong type
# %% replace
scale = ((highest - lowest) / 15).half()
# %% by
scale = ((highest - lowest) / 15).half().float()


# %% mistake="int4_scale_of_row"
# told: Your function uses one scale for a whole row
# %% replace
lowest, highest = groups.amin(2), groups.amax(2)
# %% by
extremes = [weight.amin(1), weight.amax(1)]
lowest, highest = (one[:, None].expand(groups.shape[:2]) for one in extremes)


# %% mistake="int4_scale_of_tensor"
# told: Your function uses one scale for the whole tensor
# %% replace
lowest, highest = groups.amin(2), groups.amax(2)
# %% by
lowest, highest = (one.expand(groups.shape[:2]) for one in weight.aminmax())


# %% mistake="int4_signed"
# told: Your function reads the integers as signed
# %% replace
integers = pairs.flatten(1)[:, :columns].float()
# %% by
integers = pairs.flatten(1)[:, :columns].float()
integers = torch.where(integers > 7, integers - 16, integers)


# %% mistake="int4_sixteen_steps"
# told: Your function divides the range by 16
# %% replace
scale = ((highest - lowest) / 15).half()
# %% by
scale = ((highest - lowest) / 16).half()


# %% mistake="int4_symmetric"
# told: Your function computes the scale of a symmetric grid
# %% replace
scale = ((highest - lowest) / 15).half()
# %% by
scale = (2 * groups.abs().amax(2) / 15).half()


# %% mistake="int4_without_zero"
# told: Your grid does not contain 0
# %% replace
groups = F.pad(weight, (0, -columns % group)).unflatten(1, (-1, group))
# The padding is 0, and 0 counts in every group anyway.
lowest, highest = groups.amin(2), groups.amax(2)
lowest, highest = lowest.clamp(max=0), highest.clamp(min=0)
# %% by
nan = float("nan")
groups = F.pad(weight, (0, -columns % group), value=nan).unflatten(1, (-1, group))
# The padding is 0, and 0 counts in every group anyway.
lowest = groups.nan_to_num(nan=float("inf")).amin(2)
highest = groups.nan_to_num(nan=-float("inf")).amax(2)
# %% replace
zero = (-lowest / scale.float()).round()
# %% by
zero = (-lowest / scale.float()).round().clamp(0, 15)


# %% mistake="int4_zero_after_scale"
# told: Your function adds the zero point to the scaled weight
# %% replace
return (integers - zero.float()[:, of]) * scale.float()[:, of]
# %% by
return integers * scale.float()[:, of] - zero.float()[:, of]
