# exercise: fuse
# told: every node is still a kernel of its own
def fuse(graph):
    return with_writes(graph, [[node["name"]] for node in graph["nodes"]])
