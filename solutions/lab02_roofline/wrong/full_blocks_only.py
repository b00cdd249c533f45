# exercise: diagnose
# told: this layer is not limited by latency
# like: more_blocks_than_sms.py, rows_for_elements.py


def diagnose(layer, machine, *, rightly=diagnose):  # noqa: F821
    each = machine["elements_per_block"]
    full = {"elements": layer["elements"] // each * each} if layer["kind"] == "relu" else {}
    return rightly({**layer, **full}, machine)
