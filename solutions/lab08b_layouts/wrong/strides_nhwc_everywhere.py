# exercise: strides
# told: NHWC everywhere is not the cheapest placement
def place_layouts(net):
    """The layouts with the fewest bytes copied."""
    fixed = {"conv": "NHWC", "nchw_only": "NCHW"}
    layouts = {node["name"]: node.get("layout", fixed.get(node["op"], "")) for node in net}
    return {name: layout or "NHWC" for name, layout in layouts.items()}
