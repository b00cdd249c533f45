# exercise: decode_bound
# told: one sequence's cache is read for all
def decode_s(chip, model, batch, context):
    """The cache is read once."""
    flops, moved = step_parts(model, batch, batch * context, context)
    return max(flops / chip["flop_per_s"], moved / chip["memory_byte_per_s"])
