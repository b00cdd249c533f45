# exercise: stage_ladder
# told: a rung of the ladder is wrong


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
