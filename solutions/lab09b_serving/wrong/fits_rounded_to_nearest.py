# exercise: kv_cache
# told: the last sequence does not fit whole
def fits(chip, model, tokens):
    """To the nearest."""
    room = max(0, chip["memory_bytes"] - model["parameters"] * model["number_bytes"])
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    return round(room / (tokens * kept * model["number_bytes"]))
