# %% mistake="stem_adds_times"
# told: computing and moving do not overlap in your time
# %% replace
total_s += max(flop / machine["flop_per_s"], moving_s)
# %% by
total_s += flop / machine["flop_per_s"] + moving_s


# %% mistake="stem_at_least_the_multiple"
# told: channels above the multiple are not rounded up
# %% replace
inputs, padded = channels, -(-channels // step) * step
# %% by
inputs, padded = channels, max(channels, step)


# %% mistake="stem_conv_weights_left"
# told: the weights of dense convolutions are left out
# %% replace
elements += weights + went
# %% by
elements += went + (weights if kind == "depthwise" else 0)


# %% mistake="stem_depthwise_dense"
# told: depth-wise convolutions are counted as dense ones
# %% replace
inputs, padded = 1, 1
# %% by
inputs, padded = 1, channels


# %% mistake="stem_depthwise_weights_left"
# told: the weights of depth-wise convolutions are left out
# %% replace
elements += weights + went
# %% by
elements += went + (weights if kind == "conv" else 0)


# %% mistake="stem_every_pixel"
# told: FLOP are counted for input pixels instead of output pixels
# %% replace
flop = 2 * went * padded * layer["kernel"] ** 2
# %% by
flop = 2 * came // (inputs if kind == "conv" else 1)
if kind == "conv":
    flop *= channels
flop *= padded * layer["kernel"] ** 2


# %% mistake="stem_flop_alone"
# told: bytes are left out of a layer's time
# %% replace
moving_s = 2 * elements / machine["byte_per_s"]
total_s += max(flop / machine["flop_per_s"], moving_s)
# %% by
total_s += flop / machine["flop_per_s"]


# %% mistake="stem_folded_moves"
# told: folded layers move bytes
# %% replace
elements = 0
# %% by
elements += came


# %% mistake="stem_four_bytes"
# told: elements are counted with 4 bytes instead of 2
# %% replace
moving_s = 2 * elements / machine["byte_per_s"]
# %% by
moving_s = 4 * elements / machine["byte_per_s"]


# %% mistake="stem_macs"
# told: a multiplication and an addition are counted as one operation
# %% replace
flop = 2 * went * padded * layer["kernel"] ** 2
# %% by
flop = went * padded * layer["kernel"] ** 2


# %% mistake="stem_no_weights"
# told: the bytes of the weights are left out
# %% replace
inputs, padded = 1, 1
if kind == "conv":
    step = machine["multiple"]
    inputs, padded = channels, -(-channels // step) * step
    channels = layer["channels"]
weights = channels * inputs * layer["kernel"] ** 2
# %% by
padded = 1
if kind == "conv":
    step = machine["multiple"]
    padded = -(-channels // step) * step
    channels = layer["channels"]
# %% replace
elements += weights + went
# %% by
elements += went


# %% mistake="stem_norm_twice"
# told: layer normalization reads its input twice
# %% replace
elements += came if kind == "layer_norm" else 2 * came
# %% by
elements += 2 * came


# %% mistake="stem_pads_bytes"
# told: the bytes of the input are padded
# %% replace
elements += weights + went
# %% by
elements += weights + went
if kind == "conv":
    elements += came // inputs * (padded - inputs)


# %% mistake="stem_pads_weights"
# told: the bytes of the weights are padded
# %% replace
inputs, padded = 1, 1
# %% by
padded = 1
# %% replace
inputs, padded = channels, -(-channels // step) * step
# %% by
padded = -(-channels // step) * step
# %% replace
weights = channels * inputs * layer["kernel"] ** 2
# %% by
weights = channels * padded * layer["kernel"] ** 2


# %% mistake="stem_real_channels"
# told: the input channels of dense convolutions are not rounded up
# %% replace
step = machine["multiple"]
inputs, padded = channels, -(-channels // step) * step
# %% by
inputs, padded = channels, channels


# %% mistake="stem_se_reads_once"
# told: squeeze-and-excitation reads its input only once
# %% replace
elements += came if kind == "layer_norm" else 2 * came
# %% by
elements += came


# %% mistake="stem_shuffles"
# told: pixels are shuffled, not unshuffled
# %% replace
channels *= layer["factor"] ** 2
height //= layer["factor"]
width //= layer["factor"]
# %% by
channels /= layer["factor"] ** 2
height *= layer["factor"]
width *= layer["factor"]


# %% mistake="stem_view"
# told: rearranging pixels moves no bytes
# %% replace
elements += came
# %% by
elements = 0


# %% mistake="stem_whole_roofline"
# told: the longer time is chosen for the whole stem, not for each layer
# %% replace
total_s = 0.0
# %% by
computing_s = all_moving_s = 0.0
# %% replace
total_s += max(flop / machine["flop_per_s"], moving_s)
# %% by
computing_s += flop / machine["flop_per_s"]
all_moving_s += moving_s
# %% replace
return total_s
# %% by
return max(computing_s, all_moving_s)
