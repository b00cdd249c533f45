# exercise: decode_bound
# told: a multiply and an add are two operations
def step_parts(model, tokens, looked, moved):
    """One operation."""
    looks = 4 * model["layers"] * model["heads"] * model["head_size"]
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    flops = 1 * model["parameters"] * tokens + looks * looked
    return flops, (model["parameters"] + kept * moved) * model["number_bytes"]
