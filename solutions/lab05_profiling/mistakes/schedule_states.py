# %% mistake="cycles_while_it_should_skip"
# told: in your list, the profiler is active in steps in which it should be idle
# like: records_after_the_last_cycle
def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    def state(step):
        turn, place = divmod(step - skip_first, wait + warmup + active)
        if (repeat and turn >= repeat) or place < wait:
            return "none"
        if place < wait + warmup:
            return "warmup"
        return "record and save" if place == wait + warmup + active - 1 else "record"

    return [state(step) for step in range(steps)]


# %% mistake="never_saves"
# told: your code confuses recording steps with the step that ends a recording
_right_states = schedule_states


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    fixed = {
        "warmup": warmup,
        "active": active,
        "repeat": repeat,
        "skip_first": skip_first,
        "stretch": stretch,
    }
    return [
        state.removesuffix(" and save")
        for state in _right_states(steps, wait=wait, **fixed)
    ]


# %% mistake="records_after_the_last_cycle"
# told: in your list, the profiler is active in steps in which it should be idle
_right_states = schedule_states


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    fixed = {
        "warmup": warmup,
        "active": active,
        "skip_first": skip_first,
        "stretch": stretch,
    }
    return _right_states(steps, wait=wait, repeat=0, **fixed)


# %% mistake="repeats_no_times"
# told: your code treats `repeat=0` as no cycle at all
from functools import wraps


def _at_most(exact):
    @wraps(exact)
    def schedule_states(steps, *, repeat, **options):
        return exact(steps, repeat=repeat, **options) if repeat else ["none"] * steps

    return schedule_states


schedule_states = _at_most(schedule_states)


# %% mistake="skips_in_every_cycle"
# told: in your list, a later cycle is shifted
# %% replace
states, cycles = ["none"] * skip_first, 0
# %% by
states, cycles = [], 0
# %% replace
states += ["none"] * (wait * stretch**cycles) + ["warmup"] * warmup
# %% by
states += ["none"] * (skip_first + wait * stretch**cycles) + ["warmup"] * warmup


# %% mistake="torchs_own_schedule"
# told: in your list, a later cycle waits too long or not long enough
def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    at = torch.profiler.schedule(
        wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first
    )
    names = {
        "NONE": "none",
        "WARMUP": "warmup",
        "RECORD": "record",
        "RECORD_AND_SAVE": "record and save",
    }
    return [names[at(step).name] for step in range(steps)]


# %% mistake="zero_repeats_are_none"
# told: in your list, the cycles end, but `repeat` is 0
_right_states = schedule_states


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    fixed = {
        "warmup": warmup,
        "active": active,
        "skip_first": skip_first,
        "stretch": stretch,
    }
    return _right_states(steps, wait=wait, repeat=max(1, repeat), **fixed)
