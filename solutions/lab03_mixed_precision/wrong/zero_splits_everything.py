# exercise: bytes_per_parameter
# told: does not split all of that


_right_bytes = bytes_per_parameter


def bytes_per_parameter(recipe):
    return _right_bytes({**recipe, "zero_stage": 3 if recipe["zero_stage"] else 0})
