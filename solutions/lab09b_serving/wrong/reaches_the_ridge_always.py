# exercise: decode_bound
# told: no batch reaches the ridge at this context
def ridge_batch(chip, model, context):
    """Where nothing does, the largest that there is."""
    ridge = chip["flop_per_s"] / chip["memory_byte_per_s"]
    _, weights = step_parts(model, 0, 0, 0)
    flops, moved = step_parts(model, 1, context, context)
    gained = flops - ridge * (moved - weights)
    return -int(-ridge * weights // gained)
