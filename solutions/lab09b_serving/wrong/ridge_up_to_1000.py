# exercise: decode_bound
# told: the search ends before the batch that reaches the ridge
def ridge_batch(chip, model, context):
    """As a loop up to 1000."""
    ridge = chip["flop_per_s"] / chip["memory_byte_per_s"]
    _, weights = step_parts(model, 0, 0, 0)
    flops, moved = step_parts(model, 1, context, context)
    gained = flops - ridge * (moved - weights)
    found = -int(-ridge * weights // gained) if gained > 0 else None
    return found if found is not None and found <= 1000 else None
