# %% mistake="all_reduces_forgotten"
# told: fewer all-reduces were not counted
from functools import wraps


def _other(exact):
    @wraps(exact)
    def effect(method, job):
        return exact(method, {**job, "reduce_s": 0.0})

    return effect


effect = _other(effect)


# %% mistake="cache_is_memory"
# told: empty_cache frees nothing that is in use
from functools import wraps


def _other(exact):
    @wraps(exact)
    def effect(method, job):
        speed, memory = exact(method, job)
        return speed, "+" if method == "empty_cache" else memory

    return effect


effect = _other(effect)


# %% mistake="copies_always_cost"
# told: copies that overlap passes were charged in full
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
# told: the larger batch takes the memory that was won
from functools import wraps


def _other(exact):
    @wraps(exact)
    def effect(method, job):
        speed, memory = exact(method, job)
        return speed, "+" if method == "checkpoint and grow" else memory

    return effect


effect = _other(effect)
