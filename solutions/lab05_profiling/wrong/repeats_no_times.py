# exercise: schedule_states
# told: repeat=0 was taken for no cycle at all
from functools import wraps


def _at_most(exact):
    @wraps(exact)
    def schedule_states(steps, *, repeat, **options):
        return exact(steps, repeat=repeat, **options) if repeat else ["none"] * steps

    return schedule_states


schedule_states = _at_most(schedule_states)
