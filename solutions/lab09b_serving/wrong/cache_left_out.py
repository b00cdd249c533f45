# exercise: decode_bound
# told: the cache is left out of what is moved
def step_parts(model, tokens, looked, moved):
    """Weights alone are moved."""
    looks = 4 * model["layers"] * model["heads"] * model["head_size"]
    kept = 0 * model["layers"] * model["kv_heads"] * model["head_size"]
    flops = 2 * model["parameters"] * tokens + looks * looked
    return flops, (model["parameters"] + kept * moved) * model["number_bytes"]
