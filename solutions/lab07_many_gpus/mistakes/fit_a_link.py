# %% mistake="algorithm_for_bus"
# told: your rate is that of the algorithm, not of the bus
def bus_rate(ranks, size, took_s):
    """Bytes over seconds."""
    return size / took_s


# %% mistake="all_points_alike"
# told: small messages hardly influence your fit
def fit(sizes, took_s):
    """Least squares, every point alike."""
    import numpy as np

    slope, alpha_s = np.polyfit(sizes, took_s, 1)
    return float(alpha_s), float(1 / slope), float(alpha_s / slope)


# %% mistake="bus_goes_once"
# told: your rate counts only one half of the all-reduce
def bus_rate(ranks, size, took_s):
    """As for an all_gather."""
    return (ranks - 1) / ranks * size / took_s


# %% mistake="half_of_alpha"
# told: your `half_bytes` is not the size at which half of the rate is reached
from functools import wraps


def _half_of_alpha(exact):
    @wraps(exact)
    def fit(sizes, took_s):
        """Half of alpha times rate."""
        alpha_s, rate, half_bytes = exact(sizes, took_s)
        return alpha_s, rate, half_bytes / 2

    return fit


fit = _half_of_alpha(fit)


# %% mistake="in_bits"
# told: your rate is in bits per second
from functools import wraps


def _in_bits(exact):
    @wraps(exact)
    def fit(sizes, took_s):
        """As networks are sold."""
        alpha_s, rate, half_bytes = exact(sizes, took_s)
        return alpha_s, 8 * rate, 8 * half_bytes

    return fit


fit = _in_bits(fit)


# %% mistake="in_microseconds"
# told: your alpha is in microseconds
from functools import wraps


def _in_microseconds(exact):
    @wraps(exact)
    def fit(sizes, took_s):
        """Microseconds."""
        alpha_s, rate, half_bytes = exact(sizes, took_s)
        return 1e6 * alpha_s, rate, half_bytes

    return fit


fit = _in_microseconds(fit)


# %% mistake="rate_of_a_small_one"
# told: your rate is wrong
def fit(sizes, took_s):
    """From the first message and one in the middle."""
    rate = sizes[10] / took_s[10]
    return took_s[0], rate, took_s[0] * rate


# %% mistake="through_the_origin"
# told: your alpha is zero
from functools import wraps


def _through_the_origin(exact):
    @wraps(exact)
    def fit(sizes, took_s):
        """No message is free, but here."""
        alpha_s, rate, half_bytes = exact(sizes, took_s)
        return 0.0, rate, half_bytes

    return fit


fit = _through_the_origin(fit)


# %% mistake="twice_for_all"
# told: your rate counts the wrong number of bytes on the bus
def bus_rate(ranks, size, took_s):
    """Twice the buffer, however many ranks."""
    return 2 * size / took_s
