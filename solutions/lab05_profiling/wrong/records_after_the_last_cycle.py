# exercise: schedule_states
# told: the profiler works where it should rest


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0):
    cycle = ["none"] * wait + ["warmup"] * warmup + ["record"] * (active - 1) + ["record and save"]
    return (["none"] * skip_first + cycle * steps)[:steps]
