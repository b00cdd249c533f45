# exercise: kv_cache
# told: parameters are counted as bytes
def fits(chip, model, tokens):
    """A byte for each parameter."""
    room = max(0, chip["memory_bytes"] - model["parameters"])
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    return room // (tokens * kept * model["number_bytes"])
