# exercise: strides
# told: every layer goes back to NCHW: convolutions convert one by one
def place_layouts(net):
    """The layouts with the fewest bytes copied."""
    fixed = {"conv": "NHWC", "nchw_only": "NCHW"}
    layouts = {node["name"]: node.get("layout", fixed.get(node["op"], "")) for node in net}
    return {name: layout or "NCHW" for name, layout in layouts.items()}
