# exercise: diagnose
# told: this layer is not limited by latency


def diagnose(layer, machine, *, rightly=diagnose):  # noqa: F821
    per_row = layer["features"] if layer["kind"] == "layer_norm" else 1
    return (
        rightly({**layer, "rows": layer.get("rows", 0) // per_row}, machine) if per_row > 1 else rightly(layer, machine)
    )
