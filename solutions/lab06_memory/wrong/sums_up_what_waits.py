# exercise: place_checkpoints
# told: more was counted at the peak than is held at once


def place(layers, budget_bytes):
    """Counts all that waits after the forward pass, and the largest stretch beside it."""
    fitting = []

    def go_on(i, waiting, largest, again_s, stretches):
        if waiting + largest > budget_bytes:
            return
        if i == len(layers):
            fitting.append((again_s, stretches))
            return
        go_on(i + 1, waiting + layers[i]["activation_bytes"], largest, again_s, stretches)
        whole, longer_s = 0, again_s
        for stop, layer in enumerate(layers[i:], i + 1):
            if layer["once"]:
                return
            whole, longer_s = whole + layer["activation_bytes"], longer_s + layer["forward_s"]
            go_on(stop, waiting + layer["output_bytes"], max(largest, whole), longer_s, [*stretches, (i, stop)])

    go_on(0, 0, 0, 0.0, [])
    return min(fitting)[1] if fitting else []
