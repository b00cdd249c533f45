# exercise: pick_collective
# told: something is added on the way back
from functools import wraps


def _added_both_ways(exact):
    @wraps(exact)
    def price(algorithm, job):
        """Every message is added up."""
        return exact(algorithm, {**job, "sum_byte_per_s": job["sum_byte_per_s"] / 2})

    return price


price = _added_both_ways(price)
