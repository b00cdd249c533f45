# exercise: pick_collective
# told: adding up is taken for free
from functools import wraps


def _sums_are_free(exact):
    @wraps(exact)
    def price(algorithm, job):
        """As the alpha-beta model has it."""
        return exact(algorithm, {**job, "sum_byte_per_s": 1e40})

    return price


price = _sums_are_free(price)
