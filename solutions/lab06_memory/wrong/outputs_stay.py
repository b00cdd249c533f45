# exercise: place_checkpoints
# told: outputs inside a stretch are never let go


def run_step(step, stretches):
    """Lets no output go: each layer of a stretch leaves its own."""
    ends = {i: stretch for stretch in stretches for i in range(*stretch)}
    count = len(step.tape.layers)
    for i in range(count):
        step.forward(i, keep=i not in ends)
    for i in reversed(range(count)):
        if i in ends and ends[i][1] == i + 1:
            for j in range(*ends[i]):
                step.recompute(j)
        step.backward(i)
