# %% mistake="all_gpus_share"
# told: your count is too small: without ZeRO, every GPU holds everything
_right_bytes = bytes_per_parameter


def bytes_per_parameter(recipe):
    return tuple(
        part / recipe["gpus"] for part in _right_bytes({**recipe, "zero_stage": 0})
    )


# %% mistake="all_weights_are_trained"
# told: weights that are not trained need no gradients
_right_bytes = bytes_per_parameter


def bytes_per_parameter(recipe):
    return _right_bytes({**recipe, "trained": 1.0})


# %% mistake="copies_are_resident"
# told: your code counts a temporary copy as resident
_right_bytes = bytes_per_parameter


def bytes_per_parameter(recipe):
    resident, peak = _right_bytes(recipe)
    return peak, peak


# %% mistake="frozen_weights_are_free"
# told: your count is too small: frozen weights take memory, too
_right_bytes = bytes_per_parameter


def bytes_per_parameter(recipe):
    resident, peak = _right_bytes({**recipe, "trained": 1.0})
    return recipe["trained"] * resident, recipe["trained"] * resident + (
        peak - resident
    )


# %% mistake="states_in_fp32_always"
# told: your code counts part of a pure bf16 training in fp32
_right_bytes = bytes_per_parameter


def bytes_per_parameter(recipe):
    resident, peak = _right_bytes(recipe)
    if recipe["precision"] == "bf16" and not recipe["offload"]:
        more = {"adam": 4, "momentum": 2}.get(recipe["optimizer"], 0)
        more /= recipe["gpus"] if recipe["zero_stage"] else 1
        return resident + more, peak + more
    return resident, peak


# %% mistake="whole_bytes"
# told: your code rounds the bytes
from functools import wraps


def _rounded(exact):
    @wraps(exact)
    def bytes_per_parameter(recipe):
        resident, peak = exact(recipe)
        return int(resident), int(peak)

    return bytes_per_parameter


bytes_per_parameter = _rounded(bytes_per_parameter)


# %% mistake="zero_splits_everything"
# told: does not split all that your code splits
_right_bytes = bytes_per_parameter


def bytes_per_parameter(recipe):
    return _right_bytes({**recipe, "zero_stage": 3 if recipe["zero_stage"] else 0})


# %% mistake="master_copy_only_with_states"
# told: your code leaves out the master copy if the optimizer keeps no states
# %% replace
kept = 0 if recipe["offload"] else master + states
# %% by
kept = 0 if recipe["offload"] or not states else master + states
