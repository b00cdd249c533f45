# exercise: schedule_states
# told: a later cycle is out of step


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    states, cycles = [], 0
    while len(states) < steps and (not repeat or cycles < repeat):
        states += ["none"] * (skip_first + wait * stretch**cycles) + ["warmup"] * warmup
        states += ["record"] * (active - 1) + ["record and save"]
        cycles += 1
    return (states + ["none"] * steps)[:steps]
