# exercise: fold_batch_norm
# told: a batch norm in front of a convolution is still there
# like: nothing_in_front.py
def fold_batch_norm(layers):
    """The chain with as few batch norms as can be."""

    def line(norm):
        factor = norm["gain"] / torch.sqrt(norm["var"] + norm["eps"])
        return factor, norm["shift"] - factor * norm["mean"]

    def behind(conv, norm):
        factor, rest = line(norm)
        weight, groups = conv["weight"], conv["groups"]
        if conv["kind"] == "transposed":
            own = factor.view(groups, 1, -1, 1, 1)
            scaled = (weight.unflatten(0, (groups, -1)) * own).flatten(0, 1)
        else:
            scaled = weight * factor.view(-1, 1, 1, 1)
        bias = rest if conv["bias"] is None else rest + factor * conv["bias"]
        return {**conv, "weight": scaled, "bias": bias}

    def in_front(norm, conv):
        factor, rest = line(norm)
        weight, groups = conv["weight"], conv["groups"]
        split = weight.unflatten(0, (groups, -1))
        scaled = split * factor.view(groups, 1, -1, 1, 1)
        bias = (split * rest.view(groups, 1, -1, 1, 1)).sum((2, 3, 4)).flatten()
        if conv["bias"] is not None:
            bias = bias + conv["bias"]
        return {**conv, "weight": scaled.flatten(0, 1), "bias": bias}

    done = []
    for layer in layers:
        before = done[-1]["kind"] if done else ""
        if layer["kind"] == "batch_norm" and before in ("conv", "transposed"):
            done[-1] = behind(done[-1], layer)
            continue
        if layer["kind"] == "conv" and not layer["padding"]:
            if done and done[-1]["kind"] == "batch_norm":
                layer = in_front(done.pop(), layer)
        done.append(layer)
    return done
