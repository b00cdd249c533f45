# exercise: schedule_states
# told: a recording step and the one that ends a recording are confused


_right_states = schedule_states


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    fixed = {"warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first, "stretch": stretch}
    return [state.removesuffix(" and save") for state in _right_states(steps, wait=wait, **fixed)]
