# exercise: place_checkpoints
# told: the output of a stretch's last layer was let go


def run_step(step, stretches):
    """Drops the output of a stretch's last layer, too."""
    ends = {i: stretch for stretch in stretches for i in range(*stretch)}
    count = len(step.tape.layers)
    for i in range(count):
        step.forward(i, keep=i not in ends)
        if i - 1 in ends:
            step.drop(i - 1)
    for i in reversed(range(count)):
        if i in ends and ends[i][1] == i + 1:
            for j in range(*ends[i]):
                step.recompute(j)
        step.backward(i)
