# %% mistake="at_448"
# told: an amax of exactly 448 times the scale counts as too large
# %% replace
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
# %% by
exponent = exponent - 9 + (0 if saturating else (fraction >= 0.875).int())


# %% mistake="below_range"
# told: An exponent is below the smallest
# %% replace
return exponent.where(fraction > 0, -127).clamp(min=-127)
# %% by
return exponent.where(fraction > 0, -127)


# %% mistake="exchanged"
# told: The two rules of mx_exponents are exchanged
# %% replace
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
# %% by
exponent = exponent - 9 + (0 if not saturating else (fraction > 0.875).int())


# %% mistake="first_block"
# told: The first block's exponent serves the whole row
# %% replace
scale = 2.0 ** exponents.double()[:, of]
# %% by
scale = 2.0 ** exponents.double()[:, 0 * of]


# %% mistake="fp4_absolute"
# told: The blocks' scales are not relative to the tensor's
# %% replace
scales = blocks.abs().amax(2) / 6 / tensor_scale
# %% by
scales = blocks.abs().amax(2) / 6


# %% mistake="fp4_blocks_of_32"
# told: another shape
# %% replace
blocks = F.pad(x, (0, -x.shape[1] % 16)).unflatten(1, (-1, 16))
# %% by
blocks = F.pad(x, (0, -x.shape[1] % 32)).unflatten(1, (-1, 32))


# %% mistake="fp4_by_448"
# told: A block's scale is divided by 448
# %% replace
scales = blocks.abs().amax(2) / 6 / tensor_scale
# %% by
scales = blocks.abs().amax(2) / 448 / tensor_scale


# %% mistake="fp4_first_block"
# told: The first block's scale in NVFP4 serves the whole row
# %% replace
scale = tensor_scale * block_scales[:, torch.arange(x.shape[1]) // 16]
# %% by
scale = tensor_scale * block_scales[:, 0 * torch.arange(x.shape[1])]


# %% mistake="fp4_no_448"
# told: The tensor's scale forgets how large block scales can be
# %% replace
tensor_scale = x.abs().max() / (448 * 6)
# %% by
tensor_scale = x.abs().max() / 6


# %% mistake="fp4_no_6"
# told: The tensor's scale forgets how large elements can be
# %% replace
tensor_scale = x.abs().max() / (448 * 6)
# %% by
tensor_scale = x.abs().max() / 448


# %% mistake="fp4_one_level"
# told: The values leave out the tensor's scale
# %% replace
scale = tensor_scale * block_scales[:, torch.arange(x.shape[1]) // 16]
# %% by
scale = block_scales[:, torch.arange(x.shape[1]) // 16]


# %% mistake="fp4_scale_fp32"
# told: A block's scale is not rounded to e4m3
# %% replace
rounded = scales.clamp(min=2**-6).to(torch.float8_e4m3fn)
# %% by
rounded = scales.clamp(min=2**-6)


# %% mistake="fp4_stored"
# told: nvfp4_values returns the elements alone
# %% replace
return e2m1(x / scale) * scale
# %% by
return e2m1(x / scale)


# %% mistake="fp4_subnormal"
# told: A block's scale is below 2⁻⁶
# %% replace
rounded = scales.clamp(min=2**-6).to(torch.float8_e4m3fn)
# %% by
rounded = scales.to(torch.float8_e4m3fn)


# %% mistake="no_offset"
# told: The scale is as large as the block's values
# %% replace
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
# %% by
exponent = exponent - 1 + (0 if saturating else (fraction > 0.875).int())


# %% mistake="of_448"
# told: The exponent is that of amax / 448
# %% replace
fraction, exponent = torch.frexp(blocks.abs().amax(2))
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
return exponent.where(fraction > 0, -127).clamp(min=-127)
# %% by
places = torch.log2(blocks.abs().amax(2) / 448)
exponent = places.floor() if saturating else places.ceil()
return exponent.clamp(min=-127).int()


# %% mistake="of_row"
# told: One exponent serves a whole row
# %% replace
fraction, exponent = torch.frexp(blocks.abs().amax(2))
# %% by
fraction, exponent = torch.frexp(
    blocks.abs().amax((1, 2), keepdim=True)[:, 0].expand(blocks.shape[:2])
)


# %% mistake="one_more"
# told: Every exponent is one more than the standard's
# %% replace
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
# %% by
exponent = exponent - 9 + (0 if saturating else 1)


# %% mistake="ragged_lost"
# told: another shape
# %% replace
blocks = F.pad(x, (0, -x.shape[1] % 32)).unflatten(1, (-1, 32))
# %% by
blocks = x[:, : max(x.shape[1] // 32, 1) * 32].unflatten(
    1, (max(x.shape[1] // 32, 1), -1)
)


# %% mistake="rounded_up"
# told: log2(amax) is rounded up
# %% replace
fraction, exponent = torch.frexp(blocks.abs().amax(2))
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
return exponent.where(fraction > 0, -127).clamp(min=-127)
# %% by
return (torch.log2(blocks.abs().amax(2)).ceil() - 8).clamp(min=-127).int()


# %% mistake="same_rule"
# told: Both rules give the same exponents
# %% replace
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
# %% by
exponent = exponent - 9


# %% mistake="signed"
# told: Negative values do not count
# %% replace
fraction, exponent = torch.frexp(blocks.abs().amax(2))
# %% by
fraction, exponent = torch.frexp(blocks.amax(2))
# %% replace
scales = blocks.abs().amax(2) / 6 / tensor_scale
# %% by
scales = blocks.amax(2) / 6 / tensor_scale


# %% mistake="stored"
# told: mx_values returns what is stored
# %% replace
return (codes.double() * scale).float()
# %% by
return codes.float()


# %% mistake="unrounded"
# told: Elements are not rounded
# %% replace
codes = (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
# %% by
codes = (x / scale).clamp(-448, 448)


# %% mistake="zeros"
# told: A block of zeros has another exponent
# %% replace
return exponent.where(fraction > 0, -127).clamp(min=-127)
# %% by
return exponent.clamp(min=-127)
