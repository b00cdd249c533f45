# exercise: kv_cache
# told: one layer's cache is counted
def fits(chip, model, tokens):
    """A layer."""
    room = chip["memory_bytes"] - model["parameters"] * model["number_bytes"]
    kept = 2 * model["kv_heads"] * model["head_size"]
    return room // (tokens * kept * model["number_bytes"])
