# %% mistake="strides_alike_copied"
# told: your answer copies a tensor to a layout that the tensor already has
# %% replace
alike = channels == 1 or high * wide == 1
# %% by
alike = False


# %% mistake="strides_any_padded"
# told: your answer pads channels for other operators as well
# %% replace
forms = {
    (
        layouts[one["name"]],
        padded(channels) if one["op"] == "conv" else channels,
    )
    for one in readers
}
# %% by
forms = {
    (
        layouts[one["name"]],
        padded(channels) if one["op"] in ("conv", "any") else channels,
    )
    for one in readers
}


# %% mistake="strides_both_is_nchw"
# told: your function reports NCHW for all tensors that have both layouts
# %% replace
return {0: "neither", 2: "both"}.get(len(found), *found[:1])
# %% by
return {0: "neither", 2: "NCHW"}.get(len(found), *found[:1])


# %% mistake="strides_each_reader"
# told: your answer copies a tensor again for each of its readers
# %% replace
forms = {
    (
        layouts[one["name"]],
        padded(channels) if one["op"] == "conv" else channels,
    )
    for one in readers
}
# %% by
forms = [
    (
        layouts[one["name"]],
        padded(channels) if one["op"] == "conv" else channels,
    )
    for one in readers
]


# %% mistake="strides_elements"
# told: your answer counts elements instead of bytes
# %% replace
one = 2 * first * high * wide
# %% by
one = first * high * wide


# %% mistake="strides_every_stride"
# told: your function compares the stride of a dimension with one element
# %% replace
is_it = is_it and (shape[at] == 1 or stride[at] == step)
# %% by
is_it = is_it and stride[at] == step
# %% replace
return {0: "neither", 2: "both"}.get(len(found), *found[:1])
# %% by
return (found or ["neither"])[0]


# %% mistake="strides_few_unpadded"
# told: your answer does not pad fewer than 4 channels
# %% replace
return 4 if channels <= 4 else -(-channels // 8) * 8
# %% by
return channels if channels <= 4 else -(-channels // 8) * 8


# %% mistake="strides_fewest_copies"
# told: your placement has the fewest copies, but not the fewest bytes
# %% replace
return min(every, key=lambda one: sum(conversions(net, one).values()))
# %% by
return min(every, key=lambda one: len(conversions(net, one)))


# %% mistake="strides_from_the_shape"
# told: your function takes the layout from the shape, not from the strides
def layout_of(shape, stride):
    return "NHWC" if shape[-1] < shape[1] else "NCHW"


# %% mistake="strides_handed_on"
# told: in your placement, each node takes its input's layout, as in PyTorch
def place_layouts(net):
    """The layouts with the fewest bytes copied."""
    fixed = {"conv": "NHWC", "nchw_only": "NCHW"}
    layouts = {
        node["name"]: node.get("layout", fixed.get(node["op"], "")) for node in net
    }
    for node in net:
        layouts[node["name"]] = layouts[node["name"]] or layouts[node["inputs"][0]]
    return layouts


# %% mistake="strides_innermost_alone"
# told: your function derives the layout only from the stride that is 1
def layout_of(shape, stride):
    if shape[1] == 1 or shape[2] * shape[3] == 1:
        return "both"
    return "NHWC" if stride[1] == 1 else "NCHW" if stride[3] == 1 else "neither"


# %% mistake="strides_last_form"
# told: your answer counts only one copy of a tensor
def conversions(net, layouts):
    """The bytes of every copy, by name."""

    def padded(channels):
        return 4 if channels <= 4 else -(-channels // 8) * 8

    def copied(shape, now, forms):
        first, channels, high, wide = shape
        one = 2 * first * high * wide
        alike = channels == 1 or high * wide == 1
        total = 0
        for layout, asked in forms:
            if asked != channels or (layout != now and not alike):
                total = one * (channels + asked)
        return total

    found = {}
    for node in net:
        name, channels = node["name"], node["shape"][1]
        readers = [one for one in net if name in one["inputs"]]
        forms = [
            (
                layouts[one["name"]],
                padded(channels) if one["op"] == "conv" else channels,
            )
            for one in readers
        ]
        found[name] = copied(node["shape"], layouts[name], forms)
        if node["op"] == "conv":
            form = ("NHWC", padded(node["weight"][1]))
            found[f"{name}.weight"] = copied(node["weight"], "NCHW", {form})
    return {name: size for name, size in found.items() if size}


# %% mistake="strides_layout_alone"
# told: your answer distinguishes forms of a tensor only by their layouts
# %% replace
forms = {
    (
        layouts[one["name"]],
        padded(channels) if one["op"] == "conv" else channels,
    )
    for one in readers
}
# %% by
forms = {}
for one in readers:
    asked = padded(channels) if one["op"] == "conv" else channels
    forms[layouts[one["name"]]] = max(asked, forms.get(layouts[one["name"]], 0))
forms = forms.items()


# %% mistake="strides_nchw_everywhere"
# told: in your placement, every free node runs in NCHW, so each convolution converts on its own
def place_layouts(net):
    """The layouts with the fewest bytes copied."""
    fixed = {"conv": "NHWC", "nchw_only": "NCHW"}
    layouts = {
        node["name"]: node.get("layout", fixed.get(node["op"], "")) for node in net
    }
    return {name: layout or "NCHW" for name, layout in layouts.items()}


# %% mistake="strides_nhwc_everywhere"
# told: your placement uses NHWC everywhere, which is not the cheapest placement
def place_layouts(net):
    """The layouts with the fewest bytes copied."""
    fixed = {"conv": "NHWC", "nchw_only": "NCHW"}
    layouts = {
        node["name"]: node.get("layout", fixed.get(node["op"], "")) for node in net
    }
    return {name: layout or "NHWC" for name, layout in layouts.items()}


# %% mistake="strides_no_weights"
# told: your answer never copies weights
# %% replace
if node["op"] == "conv":
    form = ("NHWC", padded(node["weight"][1]))
    found[f"{name}.weight"] = copied(node["weight"], "NCHW", {form})
# %% by
if False:
    form = ("NHWC", padded(node["weight"][1]))
    found[f"{name}.weight"] = copied(node["weight"], "NCHW", {form})


# %% mistake="strides_one_channel_unknown"
# told: your function reports both layouts only for tensors with one pixel
def layout_of(shape, stride):
    """The layout of a tensor, from its strides."""
    found = []
    for layout, inner_first in (("NCHW", (3, 2, 1, 0)), ("NHWC", (1, 3, 2, 0))):
        step, is_it = 1, True
        for at in inner_first:
            is_it = is_it and (shape[at] == 1 or stride[at] == step)
            step *= shape[at]
        found += [layout] * is_it
    if len(found) == 2 and shape[1] == 1:
        found = ["NCHW"]
    return {0: "neither", 2: "both"}.get(len(found), *found[:1])


# %% mistake="strides_one_pixel_unknown"
# told: your function reports both layouts only for tensors with one channel
def layout_of(shape, stride):
    """The layout of a tensor, from its strides."""
    found = []
    for layout, inner_first in (("NCHW", (3, 2, 1, 0)), ("NHWC", (1, 3, 2, 0))):
        step, is_it = 1, True
        for at in inner_first:
            is_it = is_it and (shape[at] == 1 or stride[at] == step)
            step *= shape[at]
        found += [layout] * is_it
    if len(found) == 2 and shape[1] != 1:
        found = ["NCHW"]
    return {0: "neither", 2: "both"}.get(len(found), *found[:1])


# %% mistake="strides_one_row_alike"
# told: your answer treats an image with a single row or column as having both layouts
# %% replace
alike = channels == 1 or high * wide == 1
# %% by
alike = 1 in (channels, high, wide)


# %% mistake="strides_padded_to_4"
# told: your answer pads more than 4 channels to a multiple of 4
# %% replace
return 4 if channels <= 4 else -(-channels // 8) * 8
# %% by
return -(-channels // 4) * 4


# %% mistake="strides_padded_to_8"
# told: your answer pads up to 4 channels to 8
# %% replace
return 4 if channels <= 4 else -(-channels // 8) * 8
# %% by
return 4 if channels == 4 else -(-channels // 8) * 8


# %% mistake="strides_reads_padded"
# told: your answer counts padded channels as read
# %% replace
return sum(
    one * (channels + asked)
    for layout, asked in forms
    if asked != channels or (layout != now and not alike)
)
# %% by
return sum(
    one * (asked + asked)
    for layout, asked in forms
    if asked != channels or (layout != now and not alike)
)


# %% mistake="strides_rest_added"
# told: your answer does not round channels up to a multiple of 8
# %% replace
return 4 if channels <= 4 else -(-channels // 8) * 8
# %% by
return 4 if channels <= 4 else channels + channels % 8


# %% mistake="strides_rows_by_height"
# told: your function derives a wrong layout from the strides
def layout_of(shape, stride):
    """The layout of a tensor; a row of NHWC takes the height for the width."""
    n, c, h, w = shape
    due = {"NCHW": (c * h * w, h * w, w, 1), "NHWC": (c * h * w, 1, h * c, c)}
    fits = [
        name
        for name, steps in due.items()
        if all(
            size == 1 or step == one
            for size, step, one in zip(shape, steps, stride, strict=True)
        )
    ]
    return "both" if len(fits) == 2 else fits[0] if fits else "neither"


# %% mistake="strides_unpadded"
# told: your answer does not pad channels for convolutions
# %% replace
return 4 if channels <= 4 else -(-channels // 8) * 8
# %% by
return channels


# %% mistake="strides_weights_as_stored"
# told: your answer does not pad the channels of weights
# %% replace
form = ("NHWC", padded(node["weight"][1]))
# %% by
form = ("NHWC", node["weight"][1])


# %% mistake="strides_written_alone"
# told: your answer counts only the bytes that a copy writes
# %% replace
return sum(
    one * (channels + asked)
    for layout, asked in forms
    if asked != channels or (layout != now and not alike)
)
# %% by
return sum(
    one * asked
    for layout, asked in forms
    if asked != channels or (layout != now and not alike)
)
