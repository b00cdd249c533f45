# exercise: strides
# told: each node takes its input's layout, which is what PyTorch does
def place_layouts(net):
    """The layouts with the fewest bytes copied."""
    fixed = {"conv": "NHWC", "nchw_only": "NCHW"}
    layouts = {node["name"]: node.get("layout", fixed.get(node["op"], "")) for node in net}
    for node in net:
        layouts[node["name"]] = layouts[node["name"]] or layouts[node["inputs"][0]]
    return layouts
