# %% mistake="always_memory"
# told: this layer is not limited by memory
def diagnose(layer, machine):
    return "memory"


# %% mistake="full_blocks_only"
# told: this layer is not limited by latency
# like: rows_for_elements
def diagnose(layer, machine, *, rightly=diagnose):  # noqa: F821
    each = machine["elements_per_block"]
    full = (
        {"elements": layer["elements"] // each * each}
        if layer["kind"] == "relu"
        else {}
    )
    return rightly({**layer, **full}, machine)


# %% mistake="more_blocks_than_sms"
# told: your code answers 'latency' for layers with exactly one block for each SM
def diagnose(layer, machine, *, rightly=diagnose):  # noqa: F821
    return rightly(layer, {**machine, "sms": machine["sms"] + 1})


# %% mistake="never_counts_blocks"
# told: your function never returns 'latency'
def diagnose(layer, machine):
    flop, moved_bytes = work_of(layer)  # noqa: F821
    ridge = machine["peak_flop_per_s"] / machine["bandwidth_byte_per_s"]
    return "math" if flop / moved_bytes > ridge else "memory"


# %% mistake="ridge_of_the_v100"
# told: this layer is not limited by m
def diagnose(layer, machine, *, rightly=diagnose):  # noqa: F821
    return rightly(
        layer, {**machine, "peak_flop_per_s": 125e12, "bandwidth_byte_per_s": 900e9}
    )


# %% mistake="rows_for_elements"
# told: this layer is not limited by latency
def diagnose(layer, machine, *, rightly=diagnose):  # noqa: F821
    per_row = layer["features"] if layer["kind"] == "layer_norm" else 1
    return (
        rightly({**layer, "rows": layer.get("rows", 0) // per_row}, machine)
        if per_row > 1
        else rightly(layer, machine)
    )
