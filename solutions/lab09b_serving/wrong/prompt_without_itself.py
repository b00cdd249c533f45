# exercise: decode_bound
# told: the tokens of a prompt do not look at themselves
def prefill_s(chip, model, tokens):
    """Each token sees those before it."""
    flops, moved = step_parts(model, tokens, tokens * (tokens - 1) // 2, tokens)
    return max(flops / chip["flop_per_s"], moved / chip["memory_byte_per_s"])
