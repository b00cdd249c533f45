# %% mistake="fuse_across_long_rows"
# told: one of your kernels continues after a reduction whose row it cannot keep
def is_one_loop(graph, names):
    """Whether nodes may be one kernel, by rules 2 to 4."""
    nodes = [node for node in graph["nodes"] if node["name"] in names]
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
    return True


# %% mistake="fuse_always_again"
# told: one of your kernels computes a node again, which costs more than reading the node's result
# %% replace
if moved_bytes(graph, best) == moved_bytes(graph, kernels):
    return kernels
# %% by
if moved_bytes(graph, best) == moved_bytes(graph, kernels):
    for at, names in enumerate(groups):
        for name in reads_of(graph, names):
            again = [name, *groups[at]]
            if kind.get(name) == "pointwise" and is_one_loop(graph, again):
                groups[at] = again
    return with_writes(graph, groups)


# %% mistake="fuse_any_read_shared"
# told: one of your kernels has contractions of different inputs
def is_one_loop(graph, names):
    """Whether nodes may be one kernel, by rules 2 to 4."""
    nodes = [one for one in graph["nodes"] if one["name"] in set(names)]
    products = [node for node in nodes if node["kind"] == "contraction"]
    sums = [node for node in nodes if node["kind"] == "reduction"]
    if len({node["elements"] for node in nodes}) > 1:
        return False
    if len({node["rows"] for node in sums}) > 1 or (sums and products):
        return False
    if products and not set.intersection(*({*node["reads"]} for node in products)):
        return False
    behind = {}
    for node in nodes:
        inside = [one for one in node["reads"] if one in behind]
        behind[node["name"]] = set(inside).union(*(behind[one] for one in inside))
    if any(behind[node["name"]] for node in products):
        return False
    too_long = set()
    for node in sums:
        if node["elements"] > graph["longest_row"] * node["rows"]:
            too_long.add(node["name"])
    return not any(found & too_long for found in behind.values())


# %% mistake="fuse_circle"
# told: your kernels wait for each other in a circle
# %% replace
fitting += [found] if can_run(graph, found) else []
# %% by
fitting.append(found)


# %% mistake="fuse_each_alone"
# told: in your plan, every node still has its own kernel
def fuse(graph):
    return with_writes(graph, [[node["name"]] for node in graph["nodes"]])


# %% mistake="fuse_longest_row_too_long"
# told: your kernels do not keep rows of exactly `longest_row` elements on the chip
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


# %% mistake="fuse_neighbours_alone"
# told: you join only kernels that are neighbours in the order of nodes
# %% replace
groups = [one["nodes"] for one in kernels]
# %% by
groups = sorted(
    (one["nodes"] for one in kernels), key=lambda names: list(kind).index(names[0])
)
# %% replace
for other in groups[at + 1 :]:
    rest = [one for one in groups if one not in (names, other)]
    both = [name for name in kind if name in {*names, *other}]
    options.append((both, rest))
# %% by
for other in groups[at + 1 : at + 2]:
    rest = [one for one in groups if one not in (names, other)]
    both = [name for name in kind if name in {*names, *other}]
    options.append((both, rest))


# %% mistake="fuse_never_again"
# told: one of your kernels reads a result that it would be cheaper to compute again
# %% replace
rest = groups[:at] + groups[at + 1 :]
for name in reads_of(graph, names):
    if kind.get(name) == "pointwise":
        options.append(([name, *names], rest))
# %% by


# %% mistake="fuse_nothing_behind_products"
# told: your kernel of a contraction leaves out the pointwise nodes after the contraction
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
    long = {
        node["name"]
        for node in sums
        if node["elements"] / node["rows"] > graph["longest_row"]
    }
    return not any(found & long for found in behind.values())


# %% mistake="fuse_nothing_for_others"
# told: one of your kernels reads a result that no kernel writes
# %% replace
needed |= {one for names in groups for one in reads_of(graph, names)}
# %% by


# %% mistake="fuse_outputs_dropped"
# told: your kernels do not write an output of the graph
# %% replace
needed = {*graph["outputs"], *graph["saved"]}
# %% by
needed = {*graph["saved"]}


# %% mistake="fuse_product_fed"
# told: one of your kernels computes what its own contraction reads
def is_one_loop(graph, names):
    """Whether nodes may be one kernel, by rules 2 to 4."""
    nodes = [node for node in graph["nodes"] if node["name"] in names]
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
    long = {
        node["name"]
        for node in sums
        if node["elements"] / node["rows"] > graph["longest_row"]
    }
    return not any(found & long for found in behind.values())


# %% mistake="fuse_qkv_apart"
# told: your kernels separate contractions of the same input
def is_one_loop(graph, names):
    """Whether nodes may be one kernel, by rules 2 to 4."""
    nodes = [node for node in graph["nodes"] if node["name"] in names]
    products = [node for node in nodes if node["kind"] == "contraction"]
    sums = [node for node in nodes if node["kind"] == "reduction"]
    if len({node["elements"] for node in nodes}) > 1:
        return False
    if len({node["rows"] for node in sums}) > 1 or (sums and products):
        return False
    if len(products) > 1:
        return False
    behind = {}
    for node in nodes:
        inside = [one for one in node["reads"] if one in behind]
        behind[node["name"]] = set(inside).union(*(behind[one] for one in inside))
    if any(behind[node["name"]] for node in products):
        return False
    long = {
        node["name"]
        for node in sums
        if node["elements"] / node["rows"] > graph["longest_row"]
    }
    return not any(found & long for found in behind.values())


# %% mistake="fuse_reduction_of_tiles"
# told: one of your kernels has both a contraction and a reduction
def is_one_loop(graph, names):
    """Whether nodes may be one kernel, by rules 2 to 4."""
    nodes = [node for node in graph["nodes"] if node["name"] in names]
    products = [node for node in nodes if node["kind"] == "contraction"]
    sums = [node for node in nodes if node["kind"] == "reduction"]
    if len({node["elements"] for node in nodes}) > 1:
        return False
    if len({node["rows"] for node in sums}) > 1:
        return False
    if len({node["reads"][0] for node in products}) > 1:
        return False
    behind = {}
    for node in nodes:
        inside = [one for one in node["reads"] if one in behind]
        behind[node["name"]] = set(inside).union(*(behind[one] for one in inside))
    if any(behind[node["name"]] for node in products):
        return False
    long = {
        node["name"]
        for node in sums
        if node["elements"] / node["rows"] > graph["longest_row"]
    }
    return not any(found & long for found in behind.values())


# %% mistake="fuse_reductions_alone"
# told: your kernels separate a reduction from nodes with the same loop
def is_one_loop(graph, names):
    """Whether nodes may be one kernel, by rules 2 to 4."""
    nodes = [node for node in graph["nodes"] if node["name"] in names]
    products = [node for node in nodes if node["kind"] == "contraction"]
    sums = [node for node in nodes if node["kind"] == "reduction"]
    if sums and len(nodes) > 1:
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
    long = {
        node["name"]
        for node in sums
        if node["elements"] / node["rows"] > graph["longest_row"]
    }
    return not any(found & long for found in behind.values())


# %% mistake="fuse_rows_and_columns"
# told: the nodes of one of your kernels need different loops
def is_one_loop(graph, names):
    """Whether nodes may be one kernel, by rules 2 to 4."""
    nodes = [node for node in graph["nodes"] if node["name"] in names]
    products = [node for node in nodes if node["kind"] == "contraction"]
    sums = [node for node in nodes if node["kind"] == "reduction"]
    if len({node["elements"] for node in nodes}) > 1:
        return False
    if sums and products:
        return False
    if len({node["reads"][0] for node in products}) > 1:
        return False
    behind = {}
    for node in nodes:
        inside = [one for one in node["reads"] if one in behind]
        behind[node["name"]] = set(inside).union(*(behind[one] for one in inside))
    if any(behind[node["name"]] for node in products):
        return False
    long = {
        node["name"]
        for node in sums
        if node["elements"] / node["rows"] > graph["longest_row"]
    }
    return not any(found & long for found in behind.values())


# %% mistake="fuse_saved_dropped"
# told: your kernels do not write a result that the backward pass needs
# %% replace
needed = {*graph["outputs"], *graph["saved"]}
# %% by
needed = {*graph["outputs"]}


# %% mistake="fuse_siblings_apart"
# told: two of your kernels read the same tensor, but one kernel would be enough
# %% replace
rest = [one for one in groups if one not in (names, other)]
# %% by
if not ({*names} & reads_of(graph, other) or {*other} & reads_of(graph, names)):
    continue
rest = [one for one in groups if one not in (names, other)]


# %% mistake="fuse_writes_all"
# told: your kernels write results that are never read
# %% replace
if moved_bytes(graph, best) == moved_bytes(graph, kernels):
    return kernels
# %% by
if moved_bytes(graph, best) == moved_bytes(graph, kernels):
    return [{**one, "writes": one["nodes"]} for one in kernels]
