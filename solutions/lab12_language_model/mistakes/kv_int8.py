# %% mistake="all_heads"
# told: The cache has one head of keys and values for each query head.
# why: with grouped queries, several query heads share one head of keys and values
# next: count kv_heads
# %% replace
return layers * kv_heads * (2 * size + 2 + 2 * size / block)
# %% by
return layers * heads * (2 * size + 2 + 2 * size / block)


# %% mistake="block_too_late"
# told: A block of keys is stored one token too late.
# why: as soon as there are `block` recent keys, they become a full block
# next: compare after the new key was added to the recent ones
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
# told: The integers are not rounded.
# why: .to(torch.int8) alone cuts the digits after the point off
# next: round before you convert
# %% replace
return (table / line_scales.float()).round().to(torch.int8), line_scales
# %% by
return (table / line_scales.float()).to(torch.int8), line_scales


# %% mistake="divided_by_exact_scale"
# told: The integers belong to scales that were not rounded.
# why: attention multiplies by the fp16 scale, so the same number has to divide
# next: round the scale to fp16 first, then divide by it
# %% replace
return (table / line_scales.float()).round().to(torch.int8), line_scales
# %% by
exact = table.abs().amax(dim, keepdim=True) / 127
exact = exact.where(exact > 0, 1.0)
return (table / exact).round().to(torch.int8), line_scales


# %% mistake="halves_up"
# told: Halves are rounded up.
# why: n + 1/2 goes to the even one of its two neighbours
# next: torch.round, without adding 1/2
# %% replace
return (table / line_scales.float()).round().to(torch.int8), line_scales
# %% by
return (table / line_scales.float() + 0.5).floor().to(torch.int8), line_scales


# %% mistake="keys_alone"
# told: cache_bytes counts keys or values, not both.
# why: each is `size` numbers for a token
# next: 2 · size integers for each head of keys and values
# %% replace
return layers * kv_heads * (2 * size + 2 + 2 * size / block)
# %% by
return layers * kv_heads * (size + 2 + 2 * size / block)


# %% mistake="keys_scaled_by_token"
# told: A key has a scale for each token.
# why: one large channel would set the scale of all others
# next: int8_along with dim = 0 for a block of keys
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
# told: latent_bytes counts each head.
# why: all heads share the latent and the rotated key
# next: a token stores both once in each layer
# %% replace
return layers * (latent + rope) * bits / 8
# %% by
return layers * heads * (latent + rope) * bits / 8


# %% mistake="latent_twice"
# told: latent_bytes counts the latent twice.
# why: keys and values are computed from the same latent
# next: one latent and one rotated key
# %% replace
return layers * (latent + rope) * bits / 8
# %% by
return layers * (2 * latent + rope) * bits / 8


# %% mistake="line_of_zeros"
# told: The scale of a line of zeros is not 1.
# why: its largest magnitude / 127 is 0, and 0 / 0 is no number
# next: take 1 where the rounded scale is 0
# %% replace
line_scales = line_scales.where(line_scales > 0, 1.0)
# %% by


# %% mistake="new_before_old"
# told: New values come before the old ones.
# why: row t of the values belongs to token t, as in the keys
# next: append at the end
# %% replace
grown["values"] = torch.cat([cache["values"], integers])
grown["value_scales"] = torch.cat([cache["value_scales"], of_token])
# %% by
grown["values"] = torch.cat([integers, cache["values"]])
grown["value_scales"] = torch.cat([of_token, cache["value_scales"]])


# %% mistake="no_share_of_block"
# told: Each token counts all scales of its block.
# why: the `size` scales of a block belong to `block` tokens together
# next: a token's share of them is 2 · size / block bytes
# %% replace
return layers * kv_heads * (2 * size + 2 + 2 * size / block)
# %% by
return layers * kv_heads * (2 * size + 2 + 2 * size)


# %% mistake="one_key_a_block"
# told: Each key has scales of its own.
# why: one token has one number in each channel, and with a scale for each the integers say nothing
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
# told: Rows and columns are exchanged in int8_along.
# why: dim = 1 means one scale for each row, as in amax(1)
# next: amax(dim, keepdim=True)
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
# told: Recent tokens are ignored.
# why: the newest tokens are those that matter most for the next word
# next: join the restored keys with the recent ones, and use all values
# %% replace
all_keys = torch.cat([cache["keys"] * of_keys, cache["recent"]])
all_values = cache["values"] * cache["value_scales"].float()
# %% by
all_keys = cache["keys"] * of_keys
all_values = (cache["values"] * cache["value_scales"].float())[: len(all_keys)]


# %% mistake="recent_kept"
# told: Stored keys stay recent.
# why: after a full block the next key is the first of a new block
# next: leave no recent keys when a block is stored
# %% replace
grown["recent"] = grown["recent"][:0]
# %% by


# %% mistake="scales_forgotten"
# told: cache_bytes leaves the scales out.
# why: a token has a scale for its value, and a share of the block's scales for its key
# next: each scale has 2 bytes
# %% replace
return layers * kv_heads * (2 * size + 2 + 2 * size / block)
# %% by
return layers * kv_heads * 2 * size


# %% mistake="scales_in_fp32"
# told: The scales are not rounded to fp16.
# why: the cache stores them in two bytes
# next: .half(), before you divide
# %% replace
line_scales = (table.abs().amax(dim, keepdim=True) / 127).half()
# %% by
line_scales = table.abs().amax(dim, keepdim=True) / 127


# %% mistake="scales_take_turns"
# told: Neighbouring keys have the scales of different blocks.
# why: the key of token t belongs to block t // block
# next: repeat_interleave repeats each row in its place; repeat repeats the whole table
# %% replace
of_keys = cache["key_scales"].float().repeat_interleave(block, 0)
# %% by
of_keys = cache["key_scales"].float().repeat(block, 1)


# %% mistake="signed"
# told: Negative values do not count in a line's scale.
# why: the largest magnitude may be that of a negative value
# next: take abs() before the maximum
# %% replace
line_scales = (table.abs().amax(dim, keepdim=True) / 127).half()
# %% by
line_scales = (table.amax(dim, keepdim=True) / 127).half()


# %% mistake="softmax_over_queries"
# told: The softmax goes over queries.
# why: each query distributes its attention over tokens
# next: rows are queries: softmax(1)
# %% replace
return scores.softmax(1) @ all_values
# %% by
return scores.softmax(0) @ all_values


# %% mistake="steps_128"
# told: A scale is the largest magnitude / 128.
# why: then the largest value would be 128, which int8 does not have
# next: divide by 127
# %% replace
line_scales = (table.abs().amax(dim, keepdim=True) / 127).half()
# %% by
line_scales = (table.abs().amax(dim, keepdim=True) / 128).half()


# %% mistake="values_as_stored"
# told: The values are not multiplied by their scales.
# why: integers of tokens with different scales cannot be added up
# next: multiply row t by the scale of token t
# %% replace
all_values = cache["values"] * cache["value_scales"].float()
# %% by
all_values = cache["values"].float()


# %% mistake="without_root"
# told: The scores are not divided by √size.
# why: attention divides q · k by the root of the size before the softmax
# next: divide by size ** 0.5
# %% replace
scores = queries @ all_keys.T / queries.shape[1] ** 0.5
# %% by
scores = queries @ all_keys.T
