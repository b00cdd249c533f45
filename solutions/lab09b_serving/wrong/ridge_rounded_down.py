# exercise: decode_bound
# told: this batch still reads for longer than it computes
def ridge_batch(chip, model, context):
    """Rounded down."""
    ridge = chip["flop_per_s"] / chip["memory_byte_per_s"]
    _, weights = step_parts(model, 0, 0, 0)
    flops, moved = step_parts(model, 1, context, context)
    gained = flops - ridge * (moved - weights)
    return int(ridge * weights // gained) if gained > 0 else None
