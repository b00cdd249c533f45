# exercise: schedule_states
# told: a later cycle is out of step


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0):
    cycle = ["none"] * (skip_first + wait) + ["warmup"] * warmup + ["record"] * (active - 1) + ["record and save"]
    return (cycle * (repeat or steps) + ["none"] * steps)[:steps]
