# exercise: kv_cache
# told: keys and values are counted for every head
def fits(chip, model, tokens):
    """Every head."""
    room = chip["memory_bytes"] - model["parameters"] * model["number_bytes"]
    kept = 2 * model["layers"] * model["heads"] * model["head_size"]
    return room // (tokens * kept * model["number_bytes"])
