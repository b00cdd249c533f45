# %% mistake="at_448"
# told: treats an amax of exactly 448 times the scale as too large
# %% replace
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
# %% by
exponent = exponent - 9 + (0 if saturating else (fraction >= 0.875).int())


# %% mistake="below_range"
# told: One of your exponents is too small.
# %% replace
return exponent.where(fraction > 0, -127).clamp(min=-127)
# %% by
return exponent.where(fraction > 0, -127)


# %% mistake="exchanged"
# told: Your function exchanges the two rules of `mx_exponents`.
# %% replace
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
# %% by
exponent = exponent - 9 + (0 if not saturating else (fraction > 0.875).int())


# %% mistake="first_block"
# told: Your function uses the first block's exponent for the whole row
# %% replace
scale = 2.0 ** exponents.double()[:, of]
# %% by
scale = 2.0 ** exponents.double()[:, 0 * of]


# %% mistake="fp4_absolute"
# told: Your block scales are not relative to the tensor's scale
# %% replace
scales = blocks.abs().amax(2) / 6 / tensor_scale
# %% by
scales = blocks.abs().amax(2) / 6


# %% mistake="fp4_blocks_of_32"
# told: wrong shape
# %% replace
blocks = F.pad(x, (0, -x.shape[1] % 16)).unflatten(1, (-1, 16))
# %% by
blocks = F.pad(x, (0, -x.shape[1] % 32)).unflatten(1, (-1, 32))


# %% mistake="fp4_by_448"
# told: Your function divides a block's amax by 448
# %% replace
scales = blocks.abs().amax(2) / 6 / tensor_scale
# %% by
scales = blocks.abs().amax(2) / 448 / tensor_scale


# %% mistake="fp4_first_block"
# told: In NVFP4, your function uses the first block's scale for the whole row
# %% replace
scale = tensor_scale * block_scales[:, torch.arange(x.shape[1]) // 16]
# %% by
scale = tensor_scale * block_scales[:, 0 * torch.arange(x.shape[1])]


# %% mistake="fp4_no_448"
# told: Your tensor scale leaves out how large block scales can be
# %% replace
tensor_scale = x.abs().max() / (448 * 6)
# %% by
tensor_scale = x.abs().max() / 6


# %% mistake="fp4_no_6"
# told: Your tensor scale leaves out how large elements can be
# %% replace
tensor_scale = x.abs().max() / (448 * 6)
# %% by
tensor_scale = x.abs().max() / 448


# %% mistake="fp4_one_level"
# told: Your values leave out the tensor's scale
# %% replace
scale = tensor_scale * block_scales[:, torch.arange(x.shape[1]) // 16]
# %% by
scale = block_scales[:, torch.arange(x.shape[1]) // 16]


# %% mistake="fp4_scale_fp32"
# told: Your function does not round a block's scale to e4m3
# %% replace
rounded = scales.clamp(min=2**-6).to(torch.float8_e4m3fn)
# %% by
rounded = scales.clamp(min=2**-6)


# %% mistake="fp4_stored"
# told: `nvfp4_values` returns only the elements.
# %% replace
return e2m1(x / scale) * scale
# %% by
return e2m1(x / scale)


# %% mistake="fp4_subnormal"
# told: Your function returns a block scale below 2⁻⁶
# %% replace
rounded = scales.clamp(min=2**-6).to(torch.float8_e4m3fn)
# %% by
rounded = scales.to(torch.float8_e4m3fn)


# %% mistake="no_offset"
# told: Your scale is as large as the block's values
# %% replace
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
# %% by
exponent = exponent - 1 + (0 if saturating else (fraction > 0.875).int())


# %% mistake="of_448"
# told: Your function computes the exponent of amax / 448
# %% replace
fraction, exponent = torch.frexp(blocks.abs().amax(2))
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
return exponent.where(fraction > 0, -127).clamp(min=-127)
# %% by
places = torch.log2(blocks.abs().amax(2) / 448)
exponent = places.floor() if saturating else places.ceil()
return exponent.clamp(min=-127).int()


# %% mistake="of_row"
# told: Your function uses one exponent for a whole row
# %% replace
fraction, exponent = torch.frexp(blocks.abs().amax(2))
# %% by
fraction, exponent = torch.frexp(
    blocks.abs().amax((1, 2), keepdim=True)[:, 0].expand(blocks.shape[:2])
)


# %% mistake="one_more"
# told: Your function adds one to every exponent
# %% replace
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
# %% by
exponent = exponent - 9 + (0 if saturating else 1)


# %% mistake="ragged_lost"
# told: wrong shape
# %% replace
blocks = F.pad(x, (0, -x.shape[1] % 32)).unflatten(1, (-1, 32))
# %% by
blocks = x[:, : max(x.shape[1] // 32, 1) * 32].unflatten(
    1, (max(x.shape[1] // 32, 1), -1)
)


# %% mistake="rounded_up"
# told: Your function rounds log2(amax) up
# %% replace
fraction, exponent = torch.frexp(blocks.abs().amax(2))
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
return exponent.where(fraction > 0, -127).clamp(min=-127)
# %% by
return (torch.log2(blocks.abs().amax(2)).ceil() - 8).clamp(min=-127).int()


# %% mistake="same_rule"
# told: Both rules of your function give the same exponents
# %% replace
exponent = exponent - 9 + (0 if saturating else (fraction > 0.875).int())
# %% by
exponent = exponent - 9


# %% mistake="signed"
# told: Your function ignores negative values
# %% replace
fraction, exponent = torch.frexp(blocks.abs().amax(2))
# %% by
fraction, exponent = torch.frexp(blocks.amax(2))
# %% replace
scales = blocks.abs().amax(2) / 6 / tensor_scale
# %% by
scales = blocks.amax(2) / 6 / tensor_scale


# %% mistake="stored"
# told: `mx_values` returns the stored elements.
# %% replace
return (codes.double() * scale).float()
# %% by
return codes.float()


# %% mistake="unrounded"
# told: Your function does not round the elements
# %% replace
codes = (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
# %% by
codes = (x / scale).clamp(-448, 448)


# %% mistake="zeros"
# told: Your exponent of a block of zeros is wrong.
# %% replace
return exponent.where(fraction > 0, -127).clamp(min=-127)
# %% by
return exponent.clamp(min=-127)
