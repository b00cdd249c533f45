# %% mistake="stem_adds_times"
# told: computing and moving overlap
# %% replace
total_s += max(flop / machine["flop_per_s"], moving_s)
# %% by
total_s += flop / machine["flop_per_s"] + moving_s


# %% mistake="stem_at_least_the_multiple"
# told: more channels than the multiple are rounded up too
# %% replace
inputs, padded = channels, -(-channels // step) * step
# %% by
inputs, padded = channels, max(channels, step)


# %% mistake="stem_conv_weights_left"
# told: a dense convolution moves its weights too
# %% replace
elements += weights + went
# %% by
elements += went + (weights if kind == "depthwise" else 0)


# %% mistake="stem_depthwise_dense"
# told: a depth-wise convolution has one input channel for each output
# %% replace
inputs, padded = 1, 1
# %% by
inputs, padded = 1, channels


# %% mistake="stem_depthwise_weights_left"
# told: a depth-wise convolution moves its weights too
# %% replace
elements += weights + went
# %% by
elements += went + (weights if kind == "conv" else 0)


# %% mistake="stem_every_pixel"
# told: FLOPs scale with the output, not the input
# %% replace
flop = 2 * went * padded * layer["kernel"] ** 2
# %% by
flop = 2 * came // (inputs if kind == "conv" else 1)
if kind == "conv":
    flop *= channels
flop *= padded * layer["kernel"] ** 2


# %% mistake="stem_flop_alone"
# told: FLOP are no seconds: bytes are left out
# %% replace
moving_s = 2 * elements / machine["byte_per_s"]
total_s += max(flop / machine["flop_per_s"], moving_s)
# %% by
total_s += flop / machine["flop_per_s"]


# %% mistake="stem_folded_moves"
# told: what is folded moves nothing
# %% replace
elements = 0
# %% by
elements += came


# %% mistake="stem_four_bytes"
# told: an element has 2 bytes
# %% replace
moving_s = 2 * elements / machine["byte_per_s"]
# %% by
moving_s = 4 * elements / machine["byte_per_s"]


# %% mistake="stem_macs"
# told: a multiplication and an addition are two operations
# %% replace
flop = 2 * went * padded * layer["kernel"] ** 2
# %% by
flop = went * padded * layer["kernel"] ** 2


# %% mistake="stem_no_weights"
# told: weights are moved too
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
# told: layer normalization reads its input once
# %% replace
elements += came if kind == "layer_norm" else 2 * came
# %% by
elements += 2 * came


# %% mistake="stem_pads_bytes"
# told: zeros of the padding are computed, and not moved
# %% replace
elements += weights + went
# %% by
elements += weights + went
if kind == "conv":
    elements += came // inputs * (padded - inputs)


# %% mistake="stem_pads_weights"
# told: weights are not padded in memory
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
# told: tensor cores compute a multiple of channels
# %% replace
step = machine["multiple"]
inputs, padded = channels, -(-channels // step) * step
# %% by
inputs, padded = channels, channels


# %% mistake="stem_se_reads_once"
# told: squeeze-and-excitation reads its input twice
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
# told: rearranging pixels moves them
# %% replace
elements += came
# %% by
elements = 0


# %% mistake="stem_whole_roofline"
# told: each layer has a longer time of its own
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
