# exercise: bytes_per_parameter
# told: weights that are not trained are there all the same


_right_bytes = bytes_per_parameter


def bytes_per_parameter(recipe):
    resident, peak = _right_bytes({**recipe, "trained": 1.0})
    return recipe["trained"] * resident, recipe["trained"] * resident + (peak - resident)
