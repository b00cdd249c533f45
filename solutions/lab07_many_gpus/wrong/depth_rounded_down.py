# exercise: pick_collective
# told: a tree has another number of rounds
from functools import wraps


def _depth_rounded_down(exact):
    @wraps(exact)
    def price(algorithm, job):
        """log2 is rounded down."""
        if algorithm == "tree":
            count = job["nodes"] * job["ranks_per_node"]
            within = 1 << (count.bit_length() - 1)
            return exact(algorithm, job) * (within.bit_length() - 1) / (count - 1).bit_length()
        return exact(algorithm, job)

    return price


price = _depth_rounded_down(price)
