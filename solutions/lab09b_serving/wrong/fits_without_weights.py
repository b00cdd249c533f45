# exercise: kv_cache
# told: the weights take no room
def fits(chip, model, tokens):
    """An empty memory."""
    room = chip["memory_bytes"]
    kept = 2 * model["layers"] * model["kv_heads"] * model["head_size"]
    return room // (tokens * kept * model["number_bytes"])
