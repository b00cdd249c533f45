# exercise: strides
# told: the fewest copies are not the fewest bytes
def place_layouts(net):
    """The layouts with the fewest copies."""
    fixed = {"conv": "NHWC", "nchw_only": "NCHW"}
    layouts = {node["name"]: node.get("layout", fixed.get(node["op"], "")) for node in net}
    free = [name for name, layout in layouts.items() if not layout]
    every = [
        {**layouts, **dict(zip(free, chosen, strict=True))} for chosen in product(("NCHW", "NHWC"), repeat=len(free))
    ]
    return min(every, key=lambda one: len(conversions(net, one)))
