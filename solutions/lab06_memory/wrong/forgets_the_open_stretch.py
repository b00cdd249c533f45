# exercise: place_checkpoints
# told: a stretch that runs again does not fit


def place(layers, budget_bytes):
    """Counts what the forward pass leaves, and forgets the stretch that runs again."""
    found = []

    def go_on(i, held, again_s, stretches):
        if held > budget_bytes:
            return
        if i == len(layers):
            found.append((again_s, stretches))
            return
        go_on(i + 1, held + layers[i]["activation_bytes"], again_s, stretches)
        longer_s = again_s
        for stop, layer in enumerate(layers[i:], i + 1):
            longer_s += layer["forward_s"]
            if layer["once"]:
                return
            go_on(stop, held + layer["output_bytes"], longer_s, [*stretches, (i, stop)])

    go_on(0, 0, 0.0, [])
    return min(found)[1]
