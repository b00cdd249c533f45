# exercise: decode_bound
# told: weights are read for every token
def decode_s(chip, model, batch, context):
    """Each sequence reads the weights."""
    flops, moved = step_parts(model, batch, batch * context, batch * context)
    moved += (batch - 1) * model["parameters"] * model["number_bytes"]
    return max(flops / chip["flop_per_s"], moved / chip["memory_byte_per_s"])


def prefill_s(chip, model, tokens):
    """Each token reads the weights."""
    flops, moved = step_parts(model, tokens, tokens * (tokens + 1) // 2, tokens)
    moved += (tokens - 1) * model["parameters"] * model["number_bytes"]
    return max(flops / chip["flop_per_s"], moved / chip["memory_byte_per_s"])
