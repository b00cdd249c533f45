# exercise: fuse
# told: a row of just the longest length is taken for too long
def is_one_loop(graph, names):
    """Whether nodes may be one kernel, by rules 2 to 4."""
    nodes = [one for one in graph["nodes"] if one["name"] in set(names)]
    products = [node for node in nodes if node["kind"] == "contraction"]
    sums = [node for node in nodes if node["kind"] == "reduction"]
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
    too_long = set()
    for node in sums:
        if node["elements"] >= graph["longest_row"] * node["rows"]:
            too_long.add(node["name"])
    return not any(found & too_long for found in behind.values())
