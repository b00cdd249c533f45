# %% mistake="cache_rotated_again"
# told: your code rotates the cached keys again
# %% replace
keys, values = (cache[name].repeat_interleave(group, dim=1) for name in ("k", "v"))
# %% by
keys, values = (cache[name].repeat_interleave(group, dim=1) for name in ("k", "v"))
cells = torch.arange(keys.shape[2]).expand(len(q), -1)
again = [rotate(keys[:, :, one], cells[:, one]) for one in range(keys.shape[2])]
fresh = torch.arange(keys.shape[2]) == at[:, None]
keys = torch.where(fresh[:, None, :, None], keys, torch.stack(again, dim=2))


# %% mistake="causal_mask_in_decode"
# told: your mask hides all tokens except the first
# %% replace
beyond = torch.arange(keys.shape[2]) > at[:, None, None]
# %% by
beyond = torch.ones(1, keys.shape[2]).triu(1).bool()


# %% mistake="fits_all_heads"
# told: your function counts keys and values for every head
def fits(chip, model, tokens):
    """Every head."""
    room = chip["memory_bytes"] - model["parameters"] * model["number_bytes"]
    kept = 2 * model["layers"] * model["heads"] * model["head_size"]
    return room // (tokens * kept * model["number_bytes"])


# %% mistake="fits_below_nothing"
# told: your function counts sequences where not even the weights fit
# %% replace
room = max(0, chip["memory_bytes"] - model["parameters"] * model["number_bytes"])
# %% by
room = chip["memory_bytes"] - model["parameters"] * model["number_bytes"]


# %% mistake="fits_keys_alone"
# told: your function leaves out keys or values
def fits(chip, model, tokens):
    """Keys."""
    room = chip["memory_bytes"] - model["parameters"] * model["number_bytes"]
    kept = model["layers"] * model["kv_heads"] * model["head_size"]
    return room // (tokens * kept * model["number_bytes"])


# %% mistake="fits_one_layer"
# told: your function counts the cache of only one layer
def fits(chip, model, tokens):
    """A layer."""
    room = chip["memory_bytes"] - model["parameters"] * model["number_bytes"]
    kept = 2 * model["kv_heads"] * model["head_size"]
    return room // (tokens * kept * model["number_bytes"])


# %% mistake="fits_parameters_as_bytes"
# told: your function counts each parameter as one byte
# %% replace
room = max(0, chip["memory_bytes"] - model["parameters"] * model["number_bytes"])
# %% by
room = max(0, chip["memory_bytes"] - model["parameters"])


# %% mistake="fits_rounded_to_nearest"
# told: the last sequence does not fit completely
# %% replace
return room // (tokens * kept * model["number_bytes"])
# %% by
return round(room / (tokens * kept * model["number_bytes"]))


# %% mistake="fits_two_bytes"
# told: your function counts every number with 2 bytes instead of `number_bytes`
def fits(chip, model, tokens):
    """fp16 numbers."""
    room = max(0, chip["memory_bytes"] - model["parameters"] * 2)
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    return room // (tokens * kept * 2)


# %% mistake="fits_without_weights"
# told: your function does not subtract the weights
# %% replace
room = max(0, chip["memory_bytes"] - model["parameters"] * model["number_bytes"])
# %% by
room = chip["memory_bytes"]


# %% mistake="heads_interleaved"
# told: your code matches heads with the wrong keys and values
# %% replace
keys, values = (cache[name].repeat_interleave(group, dim=1) for name in ("k", "v"))
# %% by
keys, values = (cache[name].repeat(1, group, 1, 1) for name in ("k", "v"))


# %% mistake="key_changed_in_place"
# told: Your function modified its input
# %% replace
cache["k"][rows, :, at] = rotate(k, at)
# %% by
k.copy_(rotate(k, at))
cache["k"][rows, :, at] = k


# %% mistake="key_not_rotated"
# told: your code does not rotate the new key
# %% replace
cache["k"][rows, :, at] = rotate(k, at)
# %% by
cache["k"][rows, :, at] = k


# %% mistake="lengths_stay"
# told: your lengths do not match the number of tokens in the cache
# %% replace
cache["lengths"] = at + 1
# %% by
cache["lengths"] = at


# %% mistake="not_itself"
# told: the new token does not attend to itself
# %% replace
beyond = torch.arange(keys.shape[2]) > at[:, None, None]
# %% by
beyond = torch.arange(keys.shape[2]) >= at[:, None, None]


# %% mistake="not_scaled"
# told: your scores have the wrong scale
# %% replace
scores = torch.einsum("rhd,rhtd->rht", rotate(q, at), keys) / q.shape[-1] ** 0.5
# %% by
scores = torch.einsum("rhd,rhtd->rht", rotate(q, at), keys)


# %% mistake="position_off_by_one"
# told: your code gives the new token the wrong position
# %% replace
cache["k"][rows, :, at] = rotate(k, at)
# %% by
cache["k"][rows, :, at] = rotate(k, at + 1)
# %% replace
scores = torch.einsum("rhd,rhtd->rht", rotate(q, at), keys) / q.shape[-1] ** 0.5
# %% by
scores = torch.einsum("rhd,rhtd->rht", rotate(q, at + 1), keys) / q.shape[-1] ** 0.5


# %% mistake="query_not_rotated"
# told: your code does not rotate the query
# %% replace
scores = torch.einsum("rhd,rhtd->rht", rotate(q, at), keys) / q.shape[-1] ** 0.5
# %% by
scores = torch.einsum("rhd,rhtd->rht", q, keys) / q.shape[-1] ** 0.5


# %% mistake="rows_equally_long"
# told: your code treats all rows as equally long
# %% replace
beyond = torch.arange(keys.shape[2]) > at[:, None, None]
# %% by
beyond = torch.arange(keys.shape[2]) > at.max()


# %% mistake="rows_mixed"
# told: a row attends to the tokens of another row
# %% replace
weights = scores.masked_fill(beyond, -torch.inf).softmax(dim=-1)
# %% by
weights = scores.masked_fill(beyond, -torch.inf).softmax(dim=-1)
values = values.roll(1, dims=0)


# %% mistake="stale_cells"
# told: a row attends to cells that do not hold its tokens
# %% replace
beyond = torch.arange(keys.shape[2]) > at[:, None, None]
# %% by
beyond = torch.arange(keys.shape[2]) > at[:, None, None] + 1


# %% mistake="values_rotated"
# told: your code rotates the values as well
# %% replace
cache["v"][rows, :, at] = v
# %% by
cache["v"][rows, :, at] = rotate(v, at)
