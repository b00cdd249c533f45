# %% mistake="differences_of_prefixes"
# told: one of your rungs is wrong
def stage_ladder(vw, stages, *, samples):
    ladder, before_s = [], 0.0
    for count, (name, _) in enumerate(stages, 1):
        vw.drop_cache()
        began_s = vw.now_s()
        for sample in range(samples):
            for _, function in stages[:count]:
                function(sample)
        together_s = (vw.now_s() - began_s) / samples
        ladder.append((name, together_s - before_s, together_s))
        before_s = together_s
    return ladder


# %% mistake="never_drops_the_cache"
# told: your code measured a stage warm instead of cold
def stage_ladder(vw, stages, *, samples):
    def run_s(functions):
        began_s = vw.now_s()
        for sample in range(samples):
            for function in functions:
                function(sample)
        return (vw.now_s() - began_s) / samples

    functions = [function for _, function in stages]
    return [
        (name, run_s([functions[i]]), run_s(functions[: i + 1]))
        for i, (name, _) in enumerate(stages)
    ]


# %% mistake="seconds_of_all_samples"
# told: your time is that of all samples together
def stage_ladder(vw, stages, *, samples):
    def run_s(functions):
        vw.drop_cache()
        began_s = vw.now_s()
        for sample in range(samples):
            for function in functions:
                function(sample)
        return vw.now_s() - began_s

    functions = [function for _, function in stages]
    return [
        (name, run_s([functions[i]]), run_s(functions[: i + 1]))
        for i, (name, _) in enumerate(stages)
    ]


# %% mistake="sums_of_single_stages"
# told: your cumulative time is too short
def stage_ladder(vw, stages, *, samples):
    ladder, together_s = [], 0.0
    for name, function in stages:
        vw.drop_cache()
        began_s = vw.now_s()
        for sample in range(samples):
            function(sample)
        alone_s = (vw.now_s() - began_s) / samples
        together_s += alone_s
        ladder.append((name, alone_s, together_s))
    return ladder


# %% mistake="this_computers_clock"
# told: your code never read the machine's own clock
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
    return [
        (name, cold_s([calls[i]]), cold_s(calls[: i + 1]))
        for i, (name, _) in enumerate(stages)
    ]


# %% mistake="up_to_but_without_it"
# told: your code left out a stage in the run that ends with this stage
def stage_ladder(vw, stages, *, samples):
    def cold_s(functions):
        vw.drop_cache()
        began_s = vw.now_s()
        for sample in range(samples):
            for function in functions:
                function(sample)
        return (vw.now_s() - began_s) / samples

    calls = [function for _, function in stages]
    return [
        (name, cold_s([calls[i]]), cold_s(calls[:i]))
        for i, (name, _) in enumerate(stages)
    ]
