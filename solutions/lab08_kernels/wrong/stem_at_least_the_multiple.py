# exercise: first_layers
# told: more channels than the multiple are rounded up too
def stem_s(stem, machine):
    """Seconds of all layers of a stem."""
    batch, channels, height, width = stem["input"]
    total_s = 0.0
    for layer in stem["layers"]:
        kind = layer["kind"]
        came = batch * channels * height * width
        flop, elements = 0, came
        if kind in ("conv", "depthwise"):
            height = -(-height // layer["stride"])
            width = -(-width // layer["stride"])
            inputs, padded = 1, 1
            if kind == "conv":
                step = machine["multiple"]
                inputs, padded = channels, max(channels, step)
                channels = layer["channels"]
            weights = channels * inputs * layer["kernel"] ** 2
            went = batch * channels * height * width
            flop = 2 * went * padded * layer["kernel"] ** 2
            elements += weights + went
        elif kind == "unshuffle":
            channels *= layer["factor"] ** 2
            height //= layer["factor"]
            width //= layer["factor"]
            elements += came
        elif kind in ("layer_norm", "se"):
            elements += came if kind == "layer_norm" else 2 * came
        else:
            elements = 0
        moving_s = 2 * elements / machine["byte_per_s"]
        total_s += max(flop / machine["flop_per_s"], moving_s)
    return total_s
