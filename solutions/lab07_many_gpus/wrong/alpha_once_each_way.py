# exercise: pick_collective
# told: a ring's alpha is paid in each round
from functools import wraps


def _alpha_once_each_way(exact):
    @wraps(exact)
    def price(algorithm, job):
        """The ring pays alpha twice in all."""
        if algorithm == "ring":
            count = job["nodes"] * job["ranks_per_node"]
            link = job["between"] if job["nodes"] > 1 else job["inside"]
            return exact(algorithm, job) - (2 * count - 4) * link["alpha_s"]
        return exact(algorithm, job)

    return price


price = _alpha_once_each_way(price)
