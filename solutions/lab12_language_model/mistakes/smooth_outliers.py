# %% mistake="bias_not_folded"
# told: Your function does not divide the norm's bias.
# why: the norm's output is normalized · norm_weight + norm_bias, and this whole sum must be divided
# next: return norm_bias / scales
# %% replace
return norm_weight / scales, norm_bias / scales, weight * scales
# %% by
return norm_weight / scales, norm_bias, weight * scales


# %% mistake="cut_off"
# told: Your function does not round to the nearest integer.
# why: .to(torch.int8) alone drops the digits after the decimal point
# next: round before you convert
# %% replace
return (table / row_scales[:, None]).round().to(torch.int8), row_scales
# %% by
return (table / row_scales[:, None]).to(torch.int8), row_scales


# %% mistake="empty_channel"
# told: Your scale of a channel of zeros is not 1.
# why: with a maximum of 0, the formula gives 0 or infinity, or uses only one of the two maxima
# next: use 1 for s_j where either of the two maxima is 0
# %% replace
return s.where((of_x > 0) & (of_weight > 0), 1.0)
# %% by
return s


# %% mistake="empty_row"
# told: Your scale of a row of zeros is not 1.
# why: the largest magnitude of such a row is 0, and 0 / 0 is not a number
# next: use 1 where the scale would be 0
# %% replace
row_scales = row_scales.where(row_scales > 0, 1.0)
# %% by


# %% mistake="exponents_exchanged"
# told: Your function exchanges the exponents α and 1 − α.
# why: with α = 1, s_j must be the maximum of the activations, and with α = 0 the reciprocal of the weights' maximum
# next: give max|X_j| the exponent α
# %% replace
s = of_x**alpha / of_weight ** (1 - alpha)
# %% by
s = of_x ** (1 - alpha) / of_weight**alpha


# %% mistake="floats"
# told: `int8_rows` returns integers of the wrong type.
# %% replace
return (table / row_scales[:, None]).round().to(torch.int8), row_scales
# %% by
return (table / row_scales[:, None]).round(), row_scales


# %% mistake="folded_in_place"
# told: Your function modified the norm or the weight.
# why: a second call with the same tensors divides and multiplies twice
# next: return new tensors: norm_weight / scales, not norm_weight /= scales
# %% replace
return norm_weight / scales, norm_bias / scales, weight * scales
# %% by
norm_weight /= scales
norm_bias /= scales
weight *= scales
return norm_weight, norm_bias, weight


# %% mistake="folded_other_way"
# told: Your function multiplies in the norm and divides in the weight.
# why: the norm's output becomes larger and the weight smaller, but the outlier must become smaller
# next: divide in the norm, and multiply in the weight
# %% replace
return norm_weight / scales, norm_bias / scales, weight * scales
# %% by
return norm_weight * scales, norm_bias * scales, weight / scales


# %% mistake="halves_up"
# told: Your function rounds halves up.
# why: n + 1/2 must be rounded to the nearest even integer
# next: use torch.round, without adding 1/2
# %% replace
return (table / row_scales[:, None]).round().to(torch.int8), row_scales
# %% by
return (table / row_scales[:, None] + 0.5).floor().to(torch.int8), row_scales


# %% mistake="inverted"
# told: `smoothing_scales` returns the reciprocal of each scale.
# why: activations are divided by their scale, so an outlier channel needs a large scale
# next: put the activations' maximum in the numerator
# %% replace
s = of_x**alpha / of_weight ** (1 - alpha)
# %% by
s = of_weight ** (1 - alpha) / of_x**alpha


# %% mistake="multiplied"
# told: `smoothing_scales` multiplies by the power of the weights' maximum instead of dividing by it.
# why: a column with small weights can absorb more of the outlier, so its scale must be larger
# next: divide by max|W_j|^(1 − α)
# %% replace
s = of_x**alpha / of_weight ** (1 - alpha)
# %% by
s = of_x**alpha * of_weight ** (1 - alpha)


# %% mistake="norm_alone"
# told: Your function does not undo the division in the linear weight.
# why: only the norm's output is divided, so the layer now computes something different
# next: multiply column j of the weight by scale j
# %% replace
return norm_weight / scales, norm_bias / scales, weight * scales
# %% by
return norm_weight / scales, norm_bias / scales, weight


# %% mistake="one_maximum"
# told: Your function uses one maximum for all channels.
# why: each channel needs its own s_j; otherwise the outlier is as far from the others as before
# next: use amax over dimension 0
# %% replace
of_x, of_weight = x.abs().amax(0), weight.abs().amax(0)
# %% by
of_x, of_weight = x.abs().max().expand(x.shape[1]), weight.abs().amax(0)


# %% mistake="one_scale"
# told: Your function uses one scale for the whole table.
# why: a token without large values can then use only a few integers
# next: take the largest magnitude of each row
# %% replace
row_scales = table.abs().amax(1) / 127
# %% by
row_scales = table.abs().max().expand(len(table)) / 127


# %% mistake="product_in_int8"
# told: Your function adds up the products in a type that is too small.
# why: in torch, the product of two int8 tensors is int8, so only the last 8 bits of a sum remain
# next: convert both tensors to torch.int32 before the product
# %% replace
sums = x.int() @ weight.int().T
# %% by
sums = x @ weight.T


# %% mistake="signed_channels"
# told: Your maximum of a channel ignores negative values.
# why: max|X_j| and max|W_j| are largest magnitudes
# next: take abs() before the maximum
# %% replace
of_x, of_weight = x.abs().amax(0), weight.abs().amax(0)
# %% by
of_x, of_weight = x.amax(0), weight.amax(0)


# %% mistake="signed_rows"
# told: Your scale of a row ignores negative values.
# why: the largest magnitude of a row may be that of a negative value
# next: take abs() before the maximum
# %% replace
row_scales = table.abs().amax(1) / 127
# %% by
row_scales = table.amax(1) / 127


# %% mistake="steps_128"
# told: Your function divides a row's largest magnitude by 128.
# why: the largest value then becomes 128, which int8 cannot represent
# next: divide by 127
# %% replace
row_scales = table.abs().amax(1) / 127
# %% by
row_scales = table.abs().amax(1) / 128


# %% mistake="steps_255"
# told: Your function divides the range of a row by 255.
# why: 0 must be represented by the integer 0, so there are 127 steps for each sign
# next: divide the largest magnitude by 127
# %% replace
row_scales = table.abs().amax(1) / 127
# %% by
row_scales = (table.amax(1) - table.amin(1)) / 255


# %% mistake="without_scales_of_weight"
# told: Your function leaves out the scales of the weight.
# why: each output channel has its own scale
# next: multiply column r of the product by the scale of row r of the weight
# %% replace
return sums * x_scales[:, None] * weight_scales
# %% by
return sums * x_scales[:, None]


# %% mistake="without_scales_of_x"
# told: Your function leaves out the scales of the activations.
# why: each token has its own scale
# next: multiply row t of the product by the scale of token t
# %% replace
return sums * x_scales[:, None] * weight_scales
# %% by
return sums * weight_scales
