# exercise: schedule_states
# told: the cycles end although repeat is 0


_right_states = schedule_states


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    fixed = {"warmup": warmup, "active": active, "skip_first": skip_first, "stretch": stretch}
    return _right_states(steps, wait=wait, repeat=max(1, repeat), **fixed)
