# exercise: place_checkpoints
# told: a layer runs again more than once


def run_step(step, stretches):
    """Runs the stretch from its start anew for each of its layers."""
    ends = {i: stretch for stretch in stretches for i in range(*stretch)}
    count = len(step.tape.layers)
    for i in range(count):
        step.forward(i, keep=i not in ends)
        if i - 1 in ends and ends[i - 1][1] != i:
            step.drop(i - 1)
    for i in reversed(range(count)):
        if i in ends:
            start, stop = ends[i]
            if i == stop - 1 and start < i:
                step.drop(i)
            for j in range(start, i + 1):
                step.recompute(j, keep=j == i)
            for j in range(start, i - 1):
                step.drop(j)
        step.backward(i)
        if i in ends and ends[i][0] < i:
            step.drop(i - 1)
