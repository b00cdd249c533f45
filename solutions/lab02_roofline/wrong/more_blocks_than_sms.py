# exercise: diagnose
# told: this layer is not limited by latency
# like: rows_for_elements.py


def diagnose(layer, machine, *, rightly=diagnose):  # noqa: F821
    return rightly(layer, {**machine, "sms": machine["sms"] + 1})
