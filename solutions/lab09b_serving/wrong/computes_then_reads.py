# exercise: decode_bound
# told: computing and reading overlap
def decode_s(chip, model, batch, context):
    """One after the other."""
    flops, moved = step_parts(model, batch, batch * context, batch * context)
    return flops / chip["flop_per_s"] + moved / chip["memory_byte_per_s"]
