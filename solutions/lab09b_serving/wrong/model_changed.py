# exercise: decode_bound
# told: Your function modified its input
def step_parts(model, tokens, looked, moved):
    """It counts the parameters in bytes, in place."""
    looks = 4 * model["layers"] * model["heads"] * model["head_size"]
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    flops = 2 * model["parameters"] * tokens + looks * looked
    model["parameters"] *= model["number_bytes"]
    return flops, model["parameters"] + kept * moved * model["number_bytes"]
