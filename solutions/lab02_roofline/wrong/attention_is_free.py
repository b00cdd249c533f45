# exercise: count_a_model
# told: the attention itself is missing


def count_block(shape):
    rows, width = shape["batch"] * shape["tokens"], shape["width"]
    per_row = 2 * width**2 * (1 + shape["kv_heads"] / shape["heads"]) + (2 + shape["gated"]) * width * shape["hidden"]
    forward = 2 * rows * per_row
    return forward, forward * (1 if shape["frozen"] else 2)
