# exercise: fit_a_link
# told: alpha is in microseconds
from functools import wraps


def _in_microseconds(exact):
    @wraps(exact)
    def fit(sizes, took_s):
        """Microseconds."""
        alpha_s, rate, half_bytes = exact(sizes, took_s)
        return 1e6 * alpha_s, rate, half_bytes

    return fit


fit = _in_microseconds(fit)
