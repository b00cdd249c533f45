# exercise: pick_collective
# told: rounds that cross nodes are priced on the wrong links
from functools import wraps


def _fast_links_between(exact):
    @wraps(exact)
    def price(algorithm, job):
        """Flat algorithms run on the fast links alone."""
        if algorithm != "hierarchical":
            return exact(algorithm, {**job, "between": job["inside"]})
        return exact(algorithm, job)

    return price


price = _fast_links_between(price)
