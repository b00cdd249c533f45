# exercise: stage_ladder
# told: a stage was left out of the run that ends with it


def stage_ladder(vw, stages, *, samples):
    def cold_s(functions):
        vw.drop_cache()
        began_s = vw.now_s()
        for sample in range(samples):
            for function in functions:
                function(sample)
        return (vw.now_s() - began_s) / samples

    calls = [function for _, function in stages]
    return [(name, cold_s([calls[i]]), cold_s(calls[:i])) for i, (name, _) in enumerate(stages)]
