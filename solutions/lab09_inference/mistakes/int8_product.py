# %% mistake="begins_at_minus_127"
# told: your code clamps the outputs at -127 instead of -128
# %% replace
return out.clamp(out_zero if relu else -128, 127).to(torch.int8)
# %% by
return out.clamp(out_zero if relu else -127, 127).to(torch.int8)


# %% mistake="bias_cut_off"
# told: your code does not round the bias to the nearest integer
# %% replace
offset = torch.round(bias / step).long() - x_zero * columns
# %% by
offset = (bias / step).long() - x_zero * columns


# %% mistake="bias_on_the_inputs_scale"
# told: your code rounds the bias in steps of x, not in units of the sums
# %% replace
offset = torch.round(bias / step).long() - x_zero * columns
# %% by
offset = torch.round(bias / x_scale).long() - x_zero * columns


# %% mistake="clamps_before_the_zero_point"
# told: your outputs wrap around when a zero point is added
def int8_product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu):
    """The layer's outputs as int8."""
    sums = x.int() @ weight.int() + offset
    sums = sums - x.int().sum(1, keepdim=True) * torch.tensor(weight_zero)
    out = torch.round(sums * multiplier).clamp(0 if relu else -128, 127) + out_zero
    return out.to(torch.int64).to(torch.int8)


# %% mistake="flat_outputs"
# told: your outputs have the wrong shape
# %% replace
return out.clamp(out_zero if relu else -128, 127).to(torch.int8)
# %% by
return out.clamp(out_zero if relu else -128, 127).to(torch.int8).flatten()


# %% mistake="input_zero_added"
# told: in your offset, both zero-point terms have the wrong sign
# %% replace
offset = torch.round(bias / step).long() - x_zero * columns
offset = offset + len(weight) * x_zero * zeros
# %% by
offset = torch.round(bias / step).long() + x_zero * columns
offset = offset - len(weight) * x_zero * zeros


# %% mistake="input_zero_stays"
# told: your code does not subtract the input's zero point
def ahead(weight, bias, *, x_scale, x_zero, weight_scale, weight_zero, out_scale):
    """Offset and multiplier of each column."""
    step = x_scale * torch.tensor(weight_scale, dtype=torch.float64)
    offset = torch.round(bias / step).long()
    return offset.to(torch.int32), step / out_scale


# %% mistake="multiplier_upside_down"
# told: your multiplier is the inverse of the right one
# %% replace
return offset.to(torch.int32), step / out_scale
# %% by
return offset.to(torch.int32), out_scale / step


# %% mistake="multiplier_without_output"
# told: your multiplier does not contain the output's scale
# %% replace
return offset.to(torch.int32), step / out_scale
# %% by
return offset.to(torch.int32), step


# %% mistake="no_relu"
# told: your relu is missing, or cuts at the wrong integer
# %% replace
return out.clamp(out_zero if relu else -128, 127).to(torch.int8)
# %% by
return out.clamp(-128, 127).to(torch.int8)


# %% mistake="one_scale_for_all"
# told: in your answer, several columns have the same multiplier
# %% replace
return offset.to(torch.int32), step / out_scale
# %% by
return offset.to(torch.int32), step[:1].expand(len(step)) / out_scale


# %% mistake="output_zero_before_scaling"
# told: your code does not add the output's zero point at the end
# %% replace
out = torch.round(sums * multiplier) + out_zero
# %% by
out = torch.round((sums + out_zero) * multiplier)


# %% mistake="outputs_come_round"
# told: your outputs wrap around beyond the range of int8
# %% replace
return out.clamp(out_zero if relu else -128, 127).to(torch.int8)
# %% by
out = out.clamp(min=out_zero) if relu else out
return ((out.long() + 128) % 256 - 128).to(torch.int8)


# %% mistake="outputs_cut_off"
# told: your code does not round the outputs to the nearest integer
# %% replace
out = torch.round(sums * multiplier) + out_zero
# %% by
out = torch.trunc(sums * multiplier) + out_zero


# %% mistake="outputs_stay_float"
# told: your outputs are not int8
# %% replace
return out.clamp(out_zero if relu else -128, 127).to(torch.int8)
# %% by
return out.clamp(out_zero if relu else -128, 127)


# %% mistake="relu_at_integer_0"
# told: your relu cuts at the integer 0, which is not the number 0 on this grid
# %% replace
return out.clamp(out_zero if relu else -128, 127).to(torch.int8)
# %% by
return out.clamp(0 if relu else -128, 127).to(torch.int8)


# %% mistake="sums_in_int16"
# told: your sums have 16 bits and wrap around beyond 32767
# %% replace
sums = x.int() @ weight.int() + offset
# %% by
sums = (x.short() @ weight.short()).int() + offset


# %% mistake="sums_in_int8"
# told: your sums are int8 and wrap around beyond 127
# %% replace
sums = x.int() @ weight.int() + offset
# %% by
sums = (x @ weight).int() + offset


# %% mistake="sums_into_the_offset"
# told: Your function modified its input
# %% replace
sums = x.int() @ weight.int() + offset
# %% by
offset += 1
sums = x.int() @ weight.int() + (offset - 1)


# %% mistake="weight_zeros_stay"
# told: your code does not subtract the weights' zero points
# %% replace
sums = sums - x.int().sum(1, keepdim=True) * torch.tensor(weight_zero)
# %% by


# %% mistake="zeros_product_lost"
# told: your offset lacks the product of both zero points
# %% replace
zeros = torch.tensor(weight_zero)
# %% by
# %% replace
offset = offset + len(weight) * x_zero * zeros
# %% by


# %% mistake="zeros_product_once"
# told: your code counts the product of both zero points the wrong number of times
# %% replace
offset = offset + len(weight) * x_zero * zeros
# %% by
offset = offset + x_zero * zeros


# %% mistake="zeros_product_subtracted"
# told: in your offset, a term of the zero points has the wrong sign
# %% replace
offset = offset + len(weight) * x_zero * zeros
# %% by
offset = offset - len(weight) * x_zero * zeros
