# %% mistake="all_heads"
# told: Your cache has one head of keys and values for each query head.
# why: with grouped queries, several query heads share one head of keys and values
# next: count `kv_heads` heads, not `heads`
# %% replace
return layers * kv_heads * (2 * size + 2 + 2 * size / block)
# %% by
return layers * heads * (2 * size + 2 + 2 * size / block)


# %% mistake="block_too_late"
# told: Your function stores a block of keys one token too late.
# why: as soon as there are `block` recent keys, they form a full block
# next: add the new key to the recent ones first, then compare their number with `block`
# %% replace
if len(grown["recent"]) == block:
    integers, of_channels = int8_along(grown["recent"], 0)
    grown["keys"] = torch.cat([cache["keys"], integers])
    grown["key_scales"] = torch.cat([cache["key_scales"], of_channels])
    grown["recent"] = grown["recent"][:0]
# %% by
if len(grown["recent"]) == block + 1:
    integers, of_channels = int8_along(grown["recent"], 0)
    grown["keys"] = torch.cat([cache["keys"], integers])
    grown["key_scales"] = torch.cat([cache["key_scales"], of_channels])
    grown["recent"] = grown["recent"][:0]


# %% mistake="cut_off"
# told: Your function does not round to the nearest integer.
# why: .to(torch.int8) alone drops the digits after the decimal point
# next: round before you convert
# %% replace
return (table / line_scales.float()).round().to(torch.int8), line_scales
# %% by
return (table / line_scales.float()).to(torch.int8), line_scales


# %% mistake="divided_by_exact_scale"
# told: Your function divides by scales that are not rounded to fp16.
# why: attention multiplies by the scale in fp16, so you must divide by the same number
# next: round the scale to fp16 first, then divide by it
# %% replace
return (table / line_scales.float()).round().to(torch.int8), line_scales
# %% by
exact = table.abs().amax(dim, keepdim=True) / 127
exact = exact.where(exact > 0, 1.0)
return (table / exact).round().to(torch.int8), line_scales


# %% mistake="halves_up"
# told: Your function rounds halves up.
# why: n + 1/2 must be rounded to the nearest even integer
# next: use torch.round, without adding 1/2
# %% replace
return (table / line_scales.float()).round().to(torch.int8), line_scales
# %% by
return (table / line_scales.float() + 0.5).floor().to(torch.int8), line_scales


# %% mistake="keys_alone"
# told: `cache_bytes` counts only keys or only values.
# why: a token has `size` numbers in its key and `size` numbers in its value
# next: count 2 · size integers for each head of keys and values
# %% replace
return layers * kv_heads * (2 * size + 2 + 2 * size / block)
# %% by
return layers * kv_heads * (size + 2 + 2 * size / block)


# %% mistake="keys_scaled_by_token"
# told: Your function stores one scale for each key instead of one for each channel.
# why: one large channel then sets the scale of all other channels
# next: use int8_along with dim = 0 for a block of keys
# %% replace
integers, of_channels = int8_along(grown["recent"], 0)
# %% by
integers, of_channels = int8_along(grown["recent"], 1)
# %% replace
grown["key_scales"] = torch.cat([cache["key_scales"], of_channels])
# %% by
of_channels = of_channels.expand(block, len(key))
grown["key_scales"] = torch.cat([cache["key_scales"], of_channels])


# %% mistake="latent_of_each_head"
# told: `latent_bytes` counts the latent once per head.
# why: all heads share the latent and the rotated key
# next: count the latent and the rotated key once for each token and layer
# %% replace
return layers * (latent + rope) * bits / 8
# %% by
return layers * heads * (latent + rope) * bits / 8


# %% mistake="latent_twice"
# told: `latent_bytes` counts the latent twice.
# why: keys and values are computed from the same latent
# next: count one latent and one rotated key
# %% replace
return layers * (latent + rope) * bits / 8
# %% by
return layers * (2 * latent + rope) * bits / 8


# %% mistake="line_of_zeros"
# told: Your scale of a row or column of zeros is not 1.
# why: the largest magnitude of such a row or column is 0, and 0 / 0 is not a number
# next: use 1 where the rounded scale is 0
# %% replace
line_scales = line_scales.where(line_scales > 0, 1.0)
# %% by


# %% mistake="new_before_old"
# told: Your function puts new values before the old ones.
# why: row t of the values belongs to token t, as with the keys
# next: append the new value at the end
# %% replace
grown["values"] = torch.cat([cache["values"], integers])
grown["value_scales"] = torch.cat([cache["value_scales"], of_token])
# %% by
grown["values"] = torch.cat([integers, cache["values"]])
grown["value_scales"] = torch.cat([of_token, cache["value_scales"]])


# %% mistake="no_share_of_block"
# told: `cache_bytes` counts all scales of a block for each token.
# why: the `size` scales of a block are shared by `block` tokens
# next: count only a token's share of these scales, 2 · size / block bytes
# %% replace
return layers * kv_heads * (2 * size + 2 + 2 * size / block)
# %% by
return layers * kv_heads * (2 * size + 2 + 2 * size)


# %% mistake="one_key_a_block"
# told: Your function stores each key as a block of its own.
# why: a block of one key has one number per channel, so the integers contain only signs
# next: keep keys in `recent` until there are `block` of them
# %% replace
if len(grown["recent"]) == block:
    integers, of_channels = int8_along(grown["recent"], 0)
    grown["keys"] = torch.cat([cache["keys"], integers])
    grown["key_scales"] = torch.cat([cache["key_scales"], of_channels])
    grown["recent"] = grown["recent"][:0]
# %% by
if len(grown["recent"]) == 1:
    integers, of_channels = int8_along(grown["recent"], 0)
    grown["keys"] = torch.cat([cache["keys"], integers])
    grown["key_scales"] = torch.cat([cache["key_scales"], of_channels])
    grown["recent"] = grown["recent"][:0]


# %% mistake="other_dimension"
# told: `int8_along` exchanges rows and columns.
# why: dim = 1 means one scale for each row, as in amax(1)
# next: use amax(dim, keepdim=True)
# %% replace
line_scales = (table.abs().amax(dim, keepdim=True) / 127).half()
# %% by
line_scales = (table.abs().amax(1 - dim, keepdim=True) / 127).half()
# %% replace
integers, of_token = int8_along(value[None], 1)
# %% by
integers, of_token = int8_along(value[None], 0)
# %% replace
integers, of_channels = int8_along(grown["recent"], 0)
# %% by
integers, of_channels = int8_along(grown["recent"], 1)


# %% mistake="recent_ignored"
# told: Your function ignores recent tokens.
# why: the newest tokens often matter most for the next word
# next: concatenate the restored keys and the recent ones, and use all values
# %% replace
all_keys = torch.cat([cache["keys"] * of_keys, cache["recent"]])
all_values = cache["values"] * cache["value_scales"].float()
# %% by
all_keys = cache["keys"] * of_keys
all_values = (cache["values"] * cache["value_scales"].float())[: len(all_keys)]


# %% mistake="recent_kept"
# told: Your function leaves stored keys in `recent`.
# why: after a full block, the next key is the first of a new block
# next: empty `recent` when you store a block
# %% replace
grown["recent"] = grown["recent"][:0]
# %% by


# %% mistake="scales_forgotten"
# told: `cache_bytes` leaves out the scales.
# why: a token has a scale for its value, and a share of the block's scales for its key
# next: add 2 bytes for each scale
# %% replace
return layers * kv_heads * (2 * size + 2 + 2 * size / block)
# %% by
return layers * kv_heads * 2 * size


# %% mistake="scales_in_fp32"
# told: Your function does not round the scales to fp16.
# why: the cache stores each scale in two bytes
# next: use .half() before you divide
# %% replace
line_scales = (table.abs().amax(dim, keepdim=True) / 127).half()
# %% by
line_scales = table.abs().amax(dim, keepdim=True) / 127


# %% mistake="scales_take_turns"
# told: Your function gives adjacent keys the scales of different blocks.
# why: the key of token t belongs to block t // block
# next: use `repeat_interleave`, which repeats row by row; `repeat` repeats the whole table
# %% replace
of_keys = cache["key_scales"].float().repeat_interleave(block, 0)
# %% by
of_keys = cache["key_scales"].float().repeat(block, 1)


# %% mistake="signed"
# told: Your scale of a row or column ignores negative values.
# why: the largest magnitude may be that of a negative value
# next: take abs() before the maximum
# %% replace
line_scales = (table.abs().amax(dim, keepdim=True) / 127).half()
# %% by
line_scales = (table.amax(dim, keepdim=True) / 127).half()


# %% mistake="softmax_over_queries"
# told: Your function computes the softmax over queries.
# why: each query distributes its attention over tokens
# next: use softmax(1): each row belongs to one query
# %% replace
return scores.softmax(1) @ all_values
# %% by
return scores.softmax(0) @ all_values


# %% mistake="steps_128"
# told: Your function divides the largest magnitude by 128.
# why: the largest value then becomes 128, which int8 cannot represent
# next: divide by 127
# %% replace
line_scales = (table.abs().amax(dim, keepdim=True) / 127).half()
# %% by
line_scales = (table.abs().amax(dim, keepdim=True) / 128).half()


# %% mistake="values_as_stored"
# told: Your function does not multiply the values by their scales.
# why: integers with different scales cannot be added directly
# next: multiply row t by the scale of token t
# %% replace
all_values = cache["values"] * cache["value_scales"].float()
# %% by
all_values = cache["values"].float()


# %% mistake="without_root"
# told: Your function does not divide the scores by √size.
# why: attention divides q · k by the square root of the size before the softmax
# next: divide by size ** 0.5
# %% replace
scores = queries @ all_keys.T / queries.shape[1] ** 0.5
# %% by
scores = queries @ all_keys.T
