# exercise: fuse
# told: pointwise nodes behind a contraction are left out of its kernel
def is_one_loop(graph, names):
    """Whether nodes may be one kernel, by rules 2 to 4."""
    nodes = [node for node in graph["nodes"] if node["name"] in names]
    products = [node for node in nodes if node["kind"] == "contraction"]
    sums = [node for node in nodes if node["kind"] == "reduction"]
    if products and len(products) < len(nodes):
        return False
    if len({node["elements"] for node in nodes}) > 1:
        return False
    if len({node["rows"] for node in sums}) > 1 or (sums and products):
        return False
    if len({node["reads"][0] for node in products}) > 1:
        return False
    behind = {}
    for node in nodes:
        inside = [one for one in node["reads"] if one in behind]
        behind[node["name"]] = set(inside).union(*(behind[one] for one in inside))
    if any(behind[node["name"]] for node in products):
        return False
    long = {node["name"] for node in sums if node["elements"] / node["rows"] > graph["longest_row"]}
    return not any(found & long for found in behind.values())
