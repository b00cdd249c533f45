# exercise: bytes_per_parameter
# told: something of a pure bf16 training was counted in fp32


_right_bytes = bytes_per_parameter


def bytes_per_parameter(recipe):
    resident, peak = _right_bytes(recipe)
    if recipe["precision"] == "bf16" and not recipe["offload"]:
        more = {"adam": 4, "momentum": 2}.get(recipe["optimizer"], 0)
        more /= recipe["gpus"] if recipe["zero_stage"] else 1
        return resident + more, peak + more
    return resident, peak
