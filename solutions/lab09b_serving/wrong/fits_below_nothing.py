# exercise: kv_cache
# told: sequences are counted where not even the weights fit
def fits(chip, model, tokens):
    """What is left, if less than nothing."""
    room = chip["memory_bytes"] - model["parameters"] * model["number_bytes"]
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    return room // (tokens * kept * model["number_bytes"])
