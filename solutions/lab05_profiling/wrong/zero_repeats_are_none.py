# exercise: schedule_states
# told: the cycles end although repeat is 0


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0):
    states = ["none"] * skip_first
    for _ in range(max(1, repeat)):
        states += ["none"] * wait + ["warmup"] * warmup + ["record"] * (active - 1) + ["record and save"]
    return (states + ["none"] * steps)[:steps]
