# exercise: decode_bound
# told: attention is left out of what is computed
def step_parts(model, tokens, looked, moved):
    """The weights' products."""
    looks = 4 * model["layers"] * model["heads"] * model["head_size"]
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    flops = 2 * model["parameters"] * tokens + 0 * looks * looked
    return flops, (model["parameters"] + kept * moved) * model["number_bytes"]
