# exercise: place_checkpoints
# told: seconds of backward passes were counted


def run_step(step, stretches):
    """Right."""
    ends = {i: stretch for stretch in stretches for i in range(*stretch)}
    count = len(step.tape.layers)
    for i in range(count):
        step.forward(i, keep=i not in ends)
        if i - 1 in ends and ends[i - 1][1] != i:
            step.drop(i - 1)
    for i in reversed(range(count)):
        if i in ends and ends[i][1] == i + 1:
            for j in range(*ends[i]):
                step.recompute(j)
        step.backward(i)


def place(layers, budget_bytes):
    """Takes the ways whose forward and backward passes together are shortest."""
    fitting = []

    def go_on(i, held, again_s, stretches):
        if i == len(layers):
            fitting.append((again_s, stretches))
            return
        if held + layers[i]["activation_bytes"] <= budget_bytes:
            go_on(i + 1, held + layers[i]["activation_bytes"], again_s, stretches)
        whole, longer_s = held, again_s
        for stop, layer in enumerate(layers[i:], i + 1):
            whole += layer["activation_bytes"]
            longer_s += layer["forward_s"] + layer["backward_s"]
            if whole > budget_bytes or layer["once"]:
                return
            go_on(stop, held + layer["output_bytes"], longer_s, [*stretches, (i, stop)])

    go_on(0, 0, 0.0, [])
    return min(fitting)[1]
