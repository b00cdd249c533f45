# exercise: kv_cache
# told: keys or values are left out
def fits(chip, model, tokens):
    """Keys."""
    room = chip["memory_bytes"] - model["parameters"] * model["number_bytes"]
    kept = model["layers"] * model["kv_heads"] * model["head_size"]
    return room // (tokens * kept * model["number_bytes"])
