# %% mistake="activations_stay"
# told: your code keeps activations after their backward pass
from functools import wraps


def _stay(exact):
    @wraps(exact)
    def timeline(layers, **options):
        live, more = exact(layers, **options), 0
        for place, layer in enumerate(reversed(layers), len(layers)):
            more += 0 if layer["inplace"] else layer["activation_bytes"]
            live[place] += more
        return live

    return timeline


timeline = _stay(timeline)


# %% mistake="forgets_the_state"
# told: your code leaves out the optimizer's state
from functools import wraps


def _stateless(exact):
    @wraps(exact)
    def timeline(layers, *, optimizer, first, set_to_none):
        return exact(layers, optimizer="sgd", first=first, set_to_none=set_to_none)

    return timeline


timeline = _stateless(timeline)


# %% mistake="gradients_from_the_start"
# told: your code counts gradients before a backward pass has made them
from functools import wraps


def _always(exact):
    @wraps(exact)
    def timeline(layers, *, optimizer, first, set_to_none):
        parameters = 4 * sum(layer["parameters"] for layer in layers)
        state = (
            {"sgd": 0, "momentum": 1, "adam": 2}[optimizer] * parameters if first else 0
        )
        live = exact(layers, optimizer=optimizer, first=False, set_to_none=False)
        moments = [value - state for value in live[:-2]] + live[-2:]
        return [*moments[:-1], moments[-1] - parameters] if set_to_none else moments

    return timeline


timeline = _always(timeline)


# %% mistake="gradients_made_twice"
# told: your code counts existing gradients twice
from functools import wraps


def _twice(exact):
    @wraps(exact)
    def timeline(layers, *, optimizer, first, set_to_none):
        live = exact(layers, optimizer=optimizer, first=first, set_to_none=set_to_none)
        if first or set_to_none:
            return live
        count, more = len(layers), 0
        for place, layer in enumerate(reversed(layers), count):
            more += 4 * layer["parameters"]
            live[place] += more
        return live

    return timeline


timeline = _twice(timeline)


# %% mistake="inplace_takes_memory"
# told: your code counts an in-place layer as if it had its own memory
from functools import wraps


def _of_its_own(exact):
    @wraps(exact)
    def timeline(layers, **options):
        return exact([{**layer, "inplace": False} for layer in layers], **options)

    return timeline


timeline = _of_its_own(timeline)


# %% mistake="none_for_zeros"
# told: your code confuses the two kinds of zero_grad
from functools import wraps


def _kept(exact):
    @wraps(exact)
    def timeline(layers, **options):
        live = exact(layers, **options)
        return [*live[:-1], live[-2]]

    return timeline


timeline = _kept(timeline)


# %% mistake="peak_at_the_end_of_forward"
# told: your peak is not the largest number in your list
def peak(live):
    place = len(live) // 2 - 2
    return live[place], place


# %% mistake="place_before_bytes"
# told: your function returned the peak's place first, and its bytes second
def peak(live):
    return live.index(max(live)), max(live)


# %% mistake="state_before_the_first_step"
# told: your code counts the optimizer's state before its first step
from functools import wraps


def _early(exact):
    @wraps(exact)
    def timeline(layers, *, optimizer, first, set_to_none):
        count = sum(layer["parameters"] for layer in layers)
        state = 4 * count * {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]
        live = exact(layers, optimizer=optimizer, first=first, set_to_none=set_to_none)
        return [value + state for value in live[:-2]] + live[-2:] if first else live

    return timeline


timeline = _early(timeline)


# %% mistake="zeros_are_gone"
# told: your code leaves out the gradients of the previous step
from functools import wraps


def _gone(exact):
    @wraps(exact)
    def timeline(layers, *, optimizer, first, set_to_none):
        live = exact(layers, optimizer=optimizer, first=first, set_to_none=True)
        return live if set_to_none else [*live[:-1], live[-2]]

    return timeline


timeline = _gone(timeline)
