# exercise: most_to_gain
# told: a speed-up is turned upside down


def most_to_gain(step, machine):
    now_s = step_s(step, machine)
    causes = ("kernels", "launch", "synchronisation", "data", "copy")
    ratios = {cause: step_s(without(step, cause), machine) / now_s for cause in causes}
    return min(ratios, key=ratios.get), ratios
