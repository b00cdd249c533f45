# exercise: decode_bound
# told: a number has 2 B, whatever number_bytes says
def step_parts(model, tokens, looked, moved):
    """fp16 numbers."""
    looks = 4 * model["layers"] * model["heads"] * model["head_size"]
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    flops = 2 * model["parameters"] * tokens + looks * looked
    return flops, (model["parameters"] + kept * moved) * 2
