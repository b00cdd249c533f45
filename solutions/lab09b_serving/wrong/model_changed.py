# exercise: decode_bound
# told: what your function was given has been changed
def step_parts(model, tokens, looked, moved):
    """It notes that it was here."""
    model["counted"] = True
    looks = 4 * model["layers"] * model["heads"] * model["head_size"]
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    flops = 2 * model["parameters"] * tokens + looks * looked
    return flops, (model["parameters"] + kept * moved) * model["number_bytes"]
