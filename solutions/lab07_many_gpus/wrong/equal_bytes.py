# exercise: buckets
# told: other groups would be faster
def plan_buckets(layers, link):
    """A fixed cap, an eighth of all bytes, and the first layer by itself."""
    cap = sum(layer["gradient_bytes"] for layer in layers) / 8
    groups, size = [[]], 0
    for number in reversed(range(len(layers))):
        if size >= cap or number == 0:
            groups.append([])
            size = 0
        groups[-1].append(number)
        size += layers[number]["gradient_bytes"]
    return groups
