# exercise: stage_ladder
# told: the machine's own clock was never read
import time


def stage_ladder(vw, stages, *, samples):
    def cold_s(functions):
        vw.drop_cache()
        began_s = time.perf_counter()
        for sample in range(samples):
            for function in functions:
                function(sample)
        return (time.perf_counter() - began_s) / samples

    calls = [function for _, function in stages]
    return [(name, cold_s([calls[i]]), cold_s(calls[: i + 1])) for i, (name, _) in enumerate(stages)]
