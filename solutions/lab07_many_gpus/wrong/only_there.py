# exercise: pick_collective
# told: the way back is missing
from functools import wraps


def _only_there(exact):
    @wraps(exact)
    def price(algorithm, job):
        """The ring scatters, and never gathers."""
        if algorithm == "ring":
            silent = {**job, "sum_byte_per_s": 1e40}
            added = exact(algorithm, job) - exact(algorithm, silent)
            return exact(algorithm, silent) / 2 + added
        return exact(algorithm, job)

    return price


price = _only_there(price)
