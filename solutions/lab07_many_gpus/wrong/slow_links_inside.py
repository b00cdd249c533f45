# exercise: pick_collective
# told: messages inside a node go over the slow links
from functools import wraps


def _slow_links_inside(exact):
    @wraps(exact)
    def price(algorithm, job):
        """All messages of the hierarchy cross nodes."""
        if algorithm == "hierarchical" and job["nodes"] > 1:
            return exact(algorithm, {**job, "inside": job["between"]})
        return exact(algorithm, job)

    return price


price = _slow_links_inside(price)
