# exercise: decode_bound
# told: the batch at the ridge does not depend on the context
def ridge_batch(chip, model, context):
    """As for a bare linear layer."""
    ridge = chip["flop_per_s"] / chip["memory_byte_per_s"]
    flops, weights = step_parts(model, 1, 0, 0)
    return -int(-ridge * weights // flops)
