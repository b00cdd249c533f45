# exercise: decode_bound
# told: the cache is counted for every head
def step_parts(model, tokens, looked, moved):
    """All heads."""
    looks = 4 * model["layers"] * model["heads"] * model["head_size"]
    kept = 2 * model["layers"] * model["heads"] * model["head_size"]
    flops = 2 * model["parameters"] * tokens + looks * looked
    return flops, (model["parameters"] + kept * moved) * model["number_bytes"]
