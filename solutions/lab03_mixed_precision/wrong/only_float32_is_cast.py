# exercise: autocast_dtype
# told: casts the other short dtype as well


def autocast_dtype(op, inputs, *, device_type, dtype):
    """The dtype of an operator's result under autocast to `dtype`, as text."""
    short = {"linear", "matmul", "conv2d", "scaled_dot_product_attention"}
    full = {"mse_loss", "cross_entropy"}
    if device_type == "cuda":
        full |= {"layer_norm", "softmax", "sum", "exp"}
    if op in short:
        cast = [dtype if one == "float32" else one for one in inputs]
    elif op in full:
        cast = [one if one == "float64" else "float32" for one in inputs]
    else:
        cast = list(inputs)
    if set(cast) == {"float16", "bfloat16"}:
        return "float32"
    return max(cast, key=["float16", "bfloat16", "float32", "float64"].index)
