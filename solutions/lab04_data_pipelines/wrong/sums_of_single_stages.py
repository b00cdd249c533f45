# exercise: stage_ladder
# told: the stages together take longer than that


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
