# exercise: schedule_states
# told: the profiler works where it should rest
# like: records_after_the_last_cycle.py


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    def state(step):
        turn, place = divmod(step - skip_first, wait + warmup + active)
        if (repeat and turn >= repeat) or place < wait:
            return "none"
        if place < wait + warmup:
            return "warmup"
        return "record and save" if place == wait + warmup + active - 1 else "record"

    return [state(step) for step in range(steps)]
