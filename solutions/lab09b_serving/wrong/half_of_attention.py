# exercise: decode_bound
# told: half of attention's operations are counted
def step_parts(model, tokens, looked, moved):
    """Scores alone."""
    looks = 2 * model["layers"] * model["heads"] * model["head_size"]
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    flops = 2 * model["parameters"] * tokens + looks * looked
    return flops, (model["parameters"] + kept * moved) * model["number_bytes"]
