# exercise: kv_cache
# told: a number has 2 bytes, whatever number_bytes says
def fits(chip, model, tokens):
    """fp16 numbers."""
    room = max(0, chip["memory_bytes"] - model["parameters"] * 2)
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    return room // (tokens * kept * 2)
