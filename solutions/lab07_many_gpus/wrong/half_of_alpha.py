# exercise: fit_a_link
# told: half of the rate is reached at another size
from functools import wraps


def _half_of_alpha(exact):
    @wraps(exact)
    def fit(sizes, took_s):
        """Half of alpha times rate."""
        alpha_s, rate, half_bytes = exact(sizes, took_s)
        return alpha_s, rate, half_bytes / 2

    return fit


fit = _half_of_alpha(fit)
