# exercise: schedule_states
# told: a recording step and the one that ends a recording are confused


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0):
    cycle = ["none"] * wait + ["warmup"] * warmup + ["record"] * active
    states = ["none"] * skip_first + cycle * (repeat or steps)
    return (states + ["none"] * steps)[:steps]
