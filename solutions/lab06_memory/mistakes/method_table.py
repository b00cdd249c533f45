# %% mistake="all_reduces_forgotten"
# told: your answer ignores that there are fewer all-reduces
from functools import wraps


def _other(exact):
    @wraps(exact)
    def effect(method, job):
        return exact(method, {**job, "reduce_s": 0.0})

    return effect


effect = _other(effect)


# %% mistake="cache_is_memory"
# told: your answer assumes that empty_cache frees memory that is in use
from functools import wraps


def _other(exact):
    @wraps(exact)
    def effect(method, job):
        speed, memory = exact(method, job)
        return speed, "+" if method == "empty_cache" else memory

    return effect


effect = _other(effect)


# %% mistake="copies_always_cost"
# told: your answer counts copies that overlap passes in full
from functools import wraps


def _other(exact):
    @wraps(exact)
    def effect(method, job):
        speed, memory = exact(method, job)
        return "-" if method == "offload" else speed, memory

    return effect


effect = _other(effect)


# %% mistake="device_is_always_full"
# told: small micro-batches no longer fill the device
from functools import wraps


def _other(exact):
    @wraps(exact)
    def effect(method, job):
        speed, memory = exact(method, job)
        return "0" if method == "split" else speed, memory

    return effect


effect = _other(effect)


# %% mistake="grows_for_free"
# told: your answer ignores that the larger batch uses the memory that was saved
from functools import wraps


def _other(exact):
    @wraps(exact)
    def effect(method, job):
        speed, memory = exact(method, job)
        return speed, "+" if method == "checkpoint and grow" else memory

    return effect


effect = _other(effect)
