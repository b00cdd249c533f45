# exercise: stage_ladder
# told: a warm figure is given for a cold one


def stage_ladder(vw, stages, *, samples):
    def run_s(functions):
        began_s = vw.now_s()
        for sample in range(samples):
            for function in functions:
                function(sample)
        return (vw.now_s() - began_s) / samples

    functions = [function for _, function in stages]
    return [(name, run_s([functions[i]]), run_s(functions[: i + 1])) for i, (name, _) in enumerate(stages)]
