# %% mistake="stem_adds_times"
# told: in your time, computing and moving do not overlap
# %% replace
total_s += max(flop / machine["flop_per_s"], moving_s)
# %% by
total_s += flop / machine["flop_per_s"] + moving_s


# %% mistake="stem_at_least_the_multiple"
# told: your function does not round up channels above the multiple
# %% replace
inputs, padded = channels, -(-channels // step) * step
# %% by
inputs, padded = channels, max(channels, step)


# %% mistake="stem_conv_weights_left"
# told: your function leaves out the weights of dense convolutions
# %% replace
elements += weights + went
# %% by
elements += went + (weights if kind == "depthwise" else 0)


# %% mistake="stem_depthwise_dense"
# told: your function counts depth-wise convolutions as dense convolutions
# %% replace
inputs, padded = 1, 1
# %% by
inputs, padded = 1, channels


# %% mistake="stem_depthwise_weights_left"
# told: your function leaves out the weights of depth-wise convolutions
# %% replace
elements += weights + went
# %% by
elements += went + (weights if kind == "conv" else 0)


# %% mistake="stem_every_pixel"
# told: your function counts FLOP for input pixels instead of output pixels
# %% replace
flop = 2 * went * padded * layer["kernel"] ** 2
# %% by
flop = 2 * came // (inputs if kind == "conv" else 1)
if kind == "conv":
    flop *= channels
flop *= padded * layer["kernel"] ** 2


# %% mistake="stem_flop_alone"
# told: your function leaves bytes out of a layer's time
# %% replace
moving_s = 2 * elements / machine["byte_per_s"]
total_s += max(flop / machine["flop_per_s"], moving_s)
# %% by
total_s += flop / machine["flop_per_s"]


# %% mistake="stem_folded_moves"
# told: in your function, folded layers move bytes
# %% replace
elements = 0
# %% by
elements += came


# %% mistake="stem_four_bytes"
# told: your function counts 4 bytes per element instead of 2
# %% replace
moving_s = 2 * elements / machine["byte_per_s"]
# %% by
moving_s = 4 * elements / machine["byte_per_s"]


# %% mistake="stem_macs"
# told: your function counts a multiplication and an addition as one operation
# %% replace
flop = 2 * went * padded * layer["kernel"] ** 2
# %% by
flop = went * padded * layer["kernel"] ** 2


# %% mistake="stem_no_weights"
# told: your function leaves out the bytes of the weights
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
# told: in your function, layer normalization reads its input twice
# %% replace
elements += came if kind == "layer_norm" else 2 * came
# %% by
elements += 2 * came


# %% mistake="stem_pads_bytes"
# told: your function pads the bytes of the input
# %% replace
elements += weights + went
# %% by
elements += weights + went
if kind == "conv":
    elements += came // inputs * (padded - inputs)


# %% mistake="stem_pads_weights"
# told: your function pads the bytes of the weights
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
# told: your function does not round up the input channels of dense convolutions
# %% replace
step = machine["multiple"]
inputs, padded = channels, -(-channels // step) * step
# %% by
inputs, padded = channels, channels


# %% mistake="stem_se_reads_once"
# told: in your function, squeeze-and-excitation reads its input only once
# %% replace
elements += came if kind == "layer_norm" else 2 * came
# %% by
elements += came


# %% mistake="stem_shuffles"
# told: your function shuffles pixels instead of unshuffling them
# %% replace
channels *= layer["factor"] ** 2
height //= layer["factor"]
width //= layer["factor"]
# %% by
channels /= layer["factor"] ** 2
height *= layer["factor"]
width *= layer["factor"]


# %% mistake="stem_view"
# told: in your function, rearranging pixels moves no bytes
# %% replace
elements += came
# %% by
elements = 0


# %% mistake="stem_whole_roofline"
# told: your function chooses the longer time for the whole stem, not for each layer
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
