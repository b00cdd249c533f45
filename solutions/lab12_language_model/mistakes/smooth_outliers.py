# %% mistake="bias_not_folded"
# told: The norm's bias is not divided.
# why: the norm's output is normalized · norm_weight + norm_bias, and all of it has to be divided
# next: norm_bias / scales
# %% replace
return norm_weight / scales, norm_bias / scales, weight * scales
# %% by
return norm_weight / scales, norm_bias, weight * scales


# %% mistake="cut_off"
# told: The integers are not rounded.
# why: .to(torch.int8) alone cuts the digits after the point off
# next: round before you convert
# %% replace
return (table / row_scales[:, None]).round().to(torch.int8), row_scales
# %% by
return (table / row_scales[:, None]).to(torch.int8), row_scales


# %% mistake="empty_channel"
# told: The scale of a channel of zeros is not 1.
# why: a power of 0 gives the scale 0, an infinite one, or one that a single maximum decides
# next: s_j is 1 where either of the two maxima is 0
# %% replace
return s.where((of_x > 0) & (of_weight > 0), 1.0)
# %% by
return s


# %% mistake="empty_row"
# told: The scale of a row of zeros is not 1.
# why: its largest magnitude / 127 is 0, and 0 / 0 is no number
# next: take 1 where the scale would be 0
# %% replace
row_scales = row_scales.where(row_scales > 0, 1.0)
# %% by


# %% mistake="exponents_exchanged"
# told: The exponents α and 1 − α are exchanged.
# why: α = 1 has to give the activations' maxima, and α = 0 one over the weights'
# next: max|X_j| has the exponent α
# %% replace
s = of_x**alpha / of_weight ** (1 - alpha)
# %% by
s = of_x ** (1 - alpha) / of_weight**alpha


# %% mistake="floats"
# told: int8_rows returns integers of another type
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
# told: The scales are folded the other way.
# why: the norm's output became larger, and the weight smaller; the outlier has to become smaller
# next: divide in the norm, multiply in the weight
# %% replace
return norm_weight / scales, norm_bias / scales, weight * scales
# %% by
return norm_weight * scales, norm_bias * scales, weight / scales


# %% mistake="halves_up"
# told: Halves are rounded up.
# why: n + 1/2 goes to the even one of its two neighbours
# next: torch.round, without adding 1/2
# %% replace
return (table / row_scales[:, None]).round().to(torch.int8), row_scales
# %% by
return (table / row_scales[:, None] + 0.5).floor().to(torch.int8), row_scales


# %% mistake="inverted"
# told: smoothing_scales returns one over each scale.
# why: an outlier channel has to get a large scale, since activations are divided by it
# next: the activations' maximum is in the numerator
# %% replace
s = of_x**alpha / of_weight ** (1 - alpha)
# %% by
s = of_weight ** (1 - alpha) / of_x**alpha


# %% mistake="multiplied"
# told: The weights' power is multiplied, not divided by.
# why: a column with small weights can take more of the outlier, so its scale is larger
# next: divide by max|W_j|^(1 − α)
# %% replace
s = of_x**alpha / of_weight ** (1 - alpha)
# %% by
s = of_x**alpha * of_weight ** (1 - alpha)


# %% mistake="norm_alone"
# told: The linear weight makes up for nothing.
# why: the norm's output is divided, so that the layer computes something else
# next: multiply column j of the weight by scale j
# %% replace
return norm_weight / scales, norm_bias / scales, weight * scales
# %% by
return norm_weight / scales, norm_bias / scales, weight


# %% mistake="one_maximum"
# told: One maximum serves all channels.
# why: each channel has its own s_j; otherwise the outlier stays as far from the others as before
# next: amax over dimension 0
# %% replace
of_x, of_weight = x.abs().amax(0), weight.abs().amax(0)
# %% by
of_x, of_weight = x.abs().max().expand(x.shape[1]), weight.abs().amax(0)


# %% mistake="one_scale"
# told: One scale serves the whole table.
# why: a token without large values then has few integers
# next: take the largest magnitude of each row
# %% replace
row_scales = table.abs().amax(1) / 127
# %% by
row_scales = table.abs().max().expand(len(table)) / 127


# %% mistake="product_in_int8"
# told: Sums of products do not fit into their type.
# why: the product of two int8 tensors is int8 in torch, and only the last 8 bits of a sum remain
# next: convert both to torch.int32 before the product
# %% replace
sums = x.int() @ weight.int().T
# %% by
sums = x @ weight.T


# %% mistake="signed_channels"
# told: Negative values do not count in a channel's maximum.
# why: max|X_j| and max|W_j| are largest magnitudes
# next: take abs() before the maximum
# %% replace
of_x, of_weight = x.abs().amax(0), weight.abs().amax(0)
# %% by
of_x, of_weight = x.amax(0), weight.amax(0)


# %% mistake="signed_rows"
# told: Negative values do not count in a row's scale.
# why: the largest magnitude of a row may be that of a negative value
# next: take abs() before the maximum
# %% replace
row_scales = table.abs().amax(1) / 127
# %% by
row_scales = table.amax(1) / 127


# %% mistake="steps_128"
# told: A row's scale is its largest magnitude / 128.
# why: then the largest value would be 128, which int8 does not have
# next: divide by 127
# %% replace
row_scales = table.abs().amax(1) / 127
# %% by
row_scales = table.abs().amax(1) / 128


# %% mistake="steps_255"
# told: A row's scale is its range / 255.
# why: zero has to be the integer 0, so both signs have the same scale, 127 steps each
# next: the largest magnitude / 127
# %% replace
row_scales = table.abs().amax(1) / 127
# %% by
row_scales = (table.amax(1) - table.amin(1)) / 255


# %% mistake="without_scales_of_weight"
# told: The weight's scales are left out.
# why: each output channel has a scale of its own
# next: multiply column r of the product by the scale of row r of the weight
# %% replace
return sums * x_scales[:, None] * weight_scales
# %% by
return sums * x_scales[:, None]


# %% mistake="without_scales_of_x"
# told: The activations' scales are left out.
# why: each token has a scale of its own
# next: multiply row t of the product by the scale of token t
# %% replace
return sums * x_scales[:, None] * weight_scales
# %% by
return sums * weight_scales
