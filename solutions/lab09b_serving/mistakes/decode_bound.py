# %% mistake="cache_left_out"
# told: your function leaves the cache out of the bytes moved
# %% replace
kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
# %% by
kept = 0 * model["layers"] * model["kv_heads"] * model["head_size"]


# %% mistake="cache_of_every_head"
# told: your function counts the cache for every head
# %% replace
kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
# %% by
kept = 2 * model["layers"] * model["heads"] * model["head_size"]


# %% mistake="computes_then_reads"
# told: your code adds the times for computing and reading, but the two overlap
def decode_s(chip, model, batch, context):
    """One after the other."""
    flops, moved = step_parts(model, batch, batch * context, batch * context)
    return flops / chip["flop_per_s"] + moved / chip["memory_byte_per_s"]


# %% mistake="decode_two_bytes"
# told: your function counts every number with 2 B instead of `number_bytes`
# %% replace
return flops, (model["parameters"] + kept * moved) * model["number_bytes"]
# %% by
return flops, (model["parameters"] + kept * moved) * 2


# %% mistake="half_of_attention"
# told: your function counts only half of attention's operations
# %% replace
looks = 4 * model["layers"] * model["heads"] * model["head_size"]
# %% by
looks = 2 * model["layers"] * model["heads"] * model["head_size"]


# %% mistake="model_changed"
# told: Your function modified its input
# %% replace
return flops, (model["parameters"] + kept * moved) * model["number_bytes"]
# %% by
model["parameters"] *= model["number_bytes"]
return flops, model["parameters"] + kept * moved * model["number_bytes"]


# %% mistake="no_attention"
# told: your function leaves out the operations of attention
# %% replace
flops = 2 * model["parameters"] * tokens + looks * looked
# %% by
flops = 2 * model["parameters"] * tokens + 0 * looks * looked


# %% mistake="one_flop_a_parameter"
# told: your function counts a multiplication and an addition as one operation
# %% replace
flops = 2 * model["parameters"] * tokens + looks * looked
# %% by
flops = 1 * model["parameters"] * tokens + looks * looked


# %% mistake="one_sequences_cache"
# told: your function counts the cache of only one sequence
# %% replace
flops, moved = step_parts(model, batch, batch * context, batch * context)
# %% by
flops, moved = step_parts(model, batch, batch * context, context)


# %% mistake="prompt_looks_at_all"
# told: in your function, every token of a prompt looks back at the whole prompt
# %% replace
flops, moved = step_parts(model, tokens, tokens * (tokens + 1) // 2, tokens)
# %% by
flops, moved = step_parts(model, tokens, tokens * tokens, tokens)


# %% mistake="prompt_without_itself"
# told: in your function, the tokens of a prompt do not look at themselves
# %% replace
flops, moved = step_parts(model, tokens, tokens * (tokens + 1) // 2, tokens)
# %% by
flops, moved = step_parts(model, tokens, tokens * (tokens - 1) // 2, tokens)


# %% mistake="reaches_the_ridge_always"
# told: no batch reaches the ridge at this context
# %% replace
return -int(-ridge * weights // gained) if gained > 0 else None
# %% by
return -int(-ridge * weights // gained)


# %% mistake="ridge_rounded_down"
# told: at your batch, reading still takes longer than computing
# %% replace
return -int(-ridge * weights // gained) if gained > 0 else None
# %% by
return int(ridge * weights // gained) if gained > 0 else None


# %% mistake="ridge_up_to_1000"
# told: your search ends before the batch that reaches the ridge
# %% replace
return -int(-ridge * weights // gained) if gained > 0 else None
# %% by
found = -int(-ridge * weights // gained) if gained > 0 else None
return found if found is not None and found <= 1000 else None


# %% mistake="ridge_without_cache"
# told: your ridge batch does not depend on the context
def ridge_batch(chip, model, context):
    """As for a bare linear layer."""
    ridge = chip["flop_per_s"] / chip["memory_byte_per_s"]
    flops, weights = step_parts(model, 1, 0, 0)
    return -int(-ridge * weights // flops)


# %% mistake="weights_for_each_token"
# told: your function counts the weights again for every token
# %% replace
flops, moved = step_parts(model, batch, batch * context, batch * context)
# %% by
flops, moved = step_parts(model, batch, batch * context, batch * context)
moved += (batch - 1) * model["parameters"] * model["number_bytes"]
# %% replace
flops, moved = step_parts(model, tokens, tokens * (tokens + 1) // 2, tokens)
# %% by
flops, moved = step_parts(model, tokens, tokens * (tokens + 1) // 2, tokens)
moved += (tokens - 1) * model["parameters"] * model["number_bytes"]
