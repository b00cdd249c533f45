# exercise: decode_bound
# told: all tokens of a prompt look back at all of it
def prefill_s(chip, model, tokens):
    """Each token sees the whole prompt."""
    flops, moved = step_parts(model, tokens, tokens * tokens, tokens)
    return max(flops / chip["flop_per_s"], moved / chip["memory_byte_per_s"])
