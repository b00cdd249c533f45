# exercise: count_a_model
# told: the projection of keys or of values


def count_block(shape):
    rows, d = shape["batch"] * shape["tokens"], shape["width"]
    kv = d * shape["kv_heads"] // shape["heads"]
    dense = 2 * rows * d * (2 * d + kv + (3 if shape["gated"] else 2) * shape["hidden"])
    attention = 2 * 2 * rows * shape["tokens"] * d
    return dense + attention, (1 if shape["frozen"] else 2) * dense + 2 * attention
