# exercise: bytes_per_parameter
# told: the bytes were rounded
from functools import wraps


def _rounded(exact):
    @wraps(exact)
    def bytes_per_parameter(recipe):
        resident, peak = exact(recipe)
        return int(resident), int(peak)

    return bytes_per_parameter


bytes_per_parameter = _rounded(bytes_per_parameter)
