# %% mistake="bias_of_four_dimensions"
# told: one of your biases has a shape that a convolution does not accept
# %% replace
return {**conv, "weight": scaled, "bias": bias}
# %% by
return {**conv, "weight": scaled, "bias": bias.view(1, -1, 1, 1)}


# %% mistake="changes_its_layers"
# told: Your function modified its input
# %% replace
scaled = weight * factor.view(-1, 1, 1, 1)
# %% by
scaled = weight.mul_(factor.view(-1, 1, 1, 1))


# %% mistake="eps_outside_the_root"
# told: your code adds eps outside the root
# %% replace
factor = norm["gain"] / torch.sqrt(norm["var"] + norm["eps"])
# %% by
factor = norm["gain"] / (torch.sqrt(norm["var"]) + norm["eps"])


# %% mistake="folds_in_front_of_padding"
# told: your code removed a batch norm that cannot be folded
# %% replace
if layer["kind"] == "conv" and not layer["padding"]:
    while done and done[-1]["kind"] == "batch_norm":
        layer = in_front(done.pop(), layer)
# %% by
if layer["kind"] == "conv":
    while done and done[-1]["kind"] == "batch_norm":
        layer = in_front(done.pop(), layer)


# %% mistake="front_along_outputs"
# told: your code folds a batch norm in front of a convolution wrongly
# like: front_groups_alike
# %% replace
scaled = split * factor.view(groups, 1, -1, 1, 1)
# %% by
many = factor.repeat(len(weight))[: len(weight)]
scaled = split * many.view(groups, -1, 1, 1, 1)


# %% mistake="front_groups_alike"
# told: your code folds a batch norm in front of a convolution wrongly
# %% replace
scaled = split * factor.view(groups, 1, -1, 1, 1)
# %% by
few = factor[: weight.shape[1]]
scaled = split * few.view(1, 1, -1, 1, 1)


# %% mistake="front_of_transposed"
# told: your code removed a batch norm in front of a transposed convolution
# %% replace
if layer["kind"] == "batch_norm" and before in ("conv", "transposed"):
    done[-1] = behind(done[-1], layer)
    continue
# %% by
if layer["kind"] == "batch_norm" and before in ("conv", "transposed"):
    done[-1] = behind(done[-1], layer)
    continue
if layer["kind"] == "transposed" and before == "batch_norm":
    factor, rest = line(done.pop())
    weight = layer["weight"]
    bias = layer["bias"] + (weight * rest.view(-1, 1, 1, 1)).sum((0, 2, 3))
    layer = {**layer, "weight": weight * factor.view(-1, 1, 1, 1), "bias": bias}


# %% mistake="front_shifts_lost"
# told: your code loses the shifts of a batch norm in front of a convolution
# %% replace
bias = (split * rest.view(groups, 1, -1, 1, 1)).sum((2, 3, 4)).flatten()
# %% by
bias = torch.zeros(len(weight), dtype=weight.dtype)


# %% mistake="mean_unscaled"
# told: your code does not scale the mean
# %% replace
return factor, norm["shift"] - factor * norm["mean"]
# %% by
return factor, norm["shift"] - norm["mean"]


# %% mistake="no_bias_stays_none"
# told: in your chain, a convolution that now needs a bias has none
# %% replace
bias = rest if conv["bias"] is None else rest + factor * conv["bias"]
# %% by
bias = None if conv["bias"] is None else rest + factor * conv["bias"]


# %% mistake="no_eps"
# told: your code leaves out eps
# %% replace
factor = norm["gain"] / torch.sqrt(norm["var"] + norm["eps"])
# %% by
factor = norm["gain"] / torch.sqrt(norm["var"])


# %% mistake="nothing_in_front"
# told: your chain keeps a batch norm in front of a convolution
# %% replace
if layer["kind"] == "conv" and not layer["padding"]:
    while done and done[-1]["kind"] == "batch_norm":
        layer = in_front(done.pop(), layer)
# %% by
if layer["kind"] == "none":
    while done and done[-1]["kind"] == "batch_norm":
        layer = in_front(done.pop(), layer)


# %% mistake="one_of_two_in_front"
# told: your chain keeps a batch norm in front of a convolution
# like: nothing_in_front
# %% replace
while done and done[-1]["kind"] == "batch_norm":
    layer = in_front(done.pop(), layer)
# %% by
if done and done[-1]["kind"] == "batch_norm":
    layer = in_front(done.pop(), layer)


# %% mistake="own_bias_lost"
# told: your code loses the convolution's own bias
# %% replace
bias = rest if conv["bias"] is None else rest + factor * conv["bias"]
# %% by
bias = rest


# %% mistake="own_bias_unscaled"
# told: your code does not scale the convolution's own bias
# %% replace
bias = rest if conv["bias"] is None else rest + factor * conv["bias"]
# %% by
bias = rest if conv["bias"] is None else rest + conv["bias"]


# %% mistake="statistics_of_the_last_batch"
# told: your code uses the statistics of the last batch
# %% replace
factor = norm["gain"] / torch.sqrt(norm["var"] + norm["eps"])
return factor, norm["shift"] - factor * norm["mean"]
# %% by
factor = norm["gain"] / torch.sqrt(norm["batch_var"] + norm["eps"])
return factor, norm["shift"] - factor * norm["batch_mean"]


# %% mistake="through_a_relu"
# told: your code removed a batch norm that a ReLU separates from the convolution
# %% replace
while done and done[-1]["kind"] == "batch_norm":
    layer = in_front(done.pop(), layer)
# %% by
while done and done[-1]["kind"] == "batch_norm":
    layer = in_front(done.pop(), layer)
kinds = [one["kind"] for one in done]
if kinds[-2:] == ["batch_norm", "relu"]:
    layer = in_front(done.pop(-2), layer)


# %% mistake="transposed_along_inputs"
# told: your code scales a transposed convolution's weight along the wrong channels
# %% replace
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


# %% by
def behind(conv, norm):
    factor, rest = line(norm)
    weight = conv["weight"]
    if conv["kind"] == "transposed":
        many = len(weight) // len(factor) + 1
        scaled = weight * factor.repeat(many)[: len(weight)].view(-1, 1, 1, 1)
    else:
        scaled = weight * factor.view(-1, 1, 1, 1)
    bias = rest if conv["bias"] is None else rest + factor * conv["bias"]
    return {**conv, "weight": scaled, "bias": bias}


# %% mistake="transposed_groups_alike"
# told: your code uses the first group's factors for all groups of a transposed convolution
# %% replace
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


# %% by
def behind(conv, norm):
    factor, rest = line(norm)
    weight = conv["weight"]
    if conv["kind"] == "transposed":
        scaled = weight * factor[: weight.shape[1]].view(1, -1, 1, 1)
    else:
        scaled = weight * factor.view(-1, 1, 1, 1)
    bias = rest if conv["bias"] is None else rest + factor * conv["bias"]
    return {**conv, "weight": scaled, "bias": bias}


# %% mistake="transposed_left_alone"
# told: your chain keeps a batch norm after a convolution
# %% replace
if layer["kind"] == "batch_norm" and before in ("conv", "transposed"):
    done[-1] = behind(done[-1], layer)
    continue
# %% by
if layer["kind"] == "batch_norm" and before == "conv":
    done[-1] = behind(done[-1], layer)
    continue


# %% mistake="variance_for_deviation"
# told: your code uses the variance instead of the standard deviation
# %% replace
factor = norm["gain"] / torch.sqrt(norm["var"] + norm["eps"])
# %% by
factor = norm["gain"] / (norm["var"] + norm["eps"])
