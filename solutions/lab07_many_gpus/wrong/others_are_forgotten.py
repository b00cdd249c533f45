# exercise: pick_collective
# told: the ranks beyond a power of two are forgotten
from functools import wraps


def _others_are_forgotten(exact):
    @wraps(exact)
    def price(algorithm, job):
        """No fold for ranks beyond a power of two."""
        count = job["nodes"] * job["ranks_per_node"]
        if algorithm == "halving-doubling" and count & (count - 1):
            within = 1 << (count.bit_length() - 1)
            if job["nodes"] > 1:
                return exact(algorithm, {**job, "nodes": within, "ranks_per_node": 1})
            return exact(algorithm, {**job, "ranks_per_node": within})
        return exact(algorithm, job)

    return price


price = _others_are_forgotten(price)
