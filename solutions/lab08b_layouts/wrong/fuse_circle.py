# exercise: fuse
# told: kernels wait for each other in a circle
def fuse(graph):
    """Kernels for a graph: dicts of nodes and writes."""
    kind = {node["name"]: node["kind"] for node in graph["nodes"]}
    kernels = with_writes(graph, [[name] for name in kind])
    while True:
        groups = [one["nodes"] for one in kernels]
        options = []
        for at, names in enumerate(groups):
            for other in groups[at + 1 :]:
                rest = [one for one in groups if one not in (names, other)]
                both = [name for name in kind if name in {*names, *other}]
                options.append((both, rest))
            rest = groups[:at] + groups[at + 1 :]
            for name in reads_of(graph, names):
                if kind.get(name) == "pointwise":
                    options.append(([name, *names], rest))
        fitting = [kernels]
        for changed, rest in options:
            if is_one_loop(graph, changed):
                found = with_writes(graph, [*rest, changed])
                fitting.append(found)
        best = min(fitting, key=lambda found: moved_bytes(graph, found))
        if moved_bytes(graph, best) == moved_bytes(graph, kernels):
            return kernels
        kernels = best
