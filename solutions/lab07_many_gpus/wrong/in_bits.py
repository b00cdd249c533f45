# exercise: fit_a_link
# told: the rate is in bits
from functools import wraps


def _in_bits(exact):
    @wraps(exact)
    def fit(sizes, took_s):
        """As networks are sold."""
        alpha_s, rate, half_bytes = exact(sizes, took_s)
        return alpha_s, 8 * rate, 8 * half_bytes

    return fit


fit = _in_bits(fit)
