# %% mistake="cpu_is_like_cuda"
# told: is not in
_right_dtype = autocast_dtype


def autocast_dtype(op, inputs, *, device_type, dtype):
    return _right_dtype(op, inputs, device_type="cuda", dtype=dtype)


# %% mistake="everything_short"
# told: is not in
def autocast_dtype(op, inputs, *, device_type, dtype):
    return dtype


# %% mistake="float64_comes_first"
# told: your answer is not float64, the wider of the two dtypes
_right_dtype = autocast_dtype


def autocast_dtype(op, inputs, *, device_type, dtype):
    if inputs[0] == "float64":
        return "float64"
    others = [one for one in inputs if one != "float64"]
    return _right_dtype(op, others, device_type=device_type, dtype=dtype)


# %% mistake="keeps_the_first_input"
# told: is not in
def autocast_dtype(op, inputs, *, device_type, dtype):
    return inputs[0]


# %% mistake="only_float32_is_cast"
# told: casts inputs in the other short dtype
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
