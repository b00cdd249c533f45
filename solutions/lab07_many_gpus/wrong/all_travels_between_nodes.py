# exercise: pick_collective
# told: too much travels between nodes
from functools import wraps


def _all_travels_between_nodes(exact):
    @wraps(exact)
    def price(algorithm, job):
        """The ring between nodes has the whole message."""
        if algorithm == "hierarchical":
            alone = exact(algorithm, {**job, "nodes": 1})
            wide = {**job, "ranks_per_node": 1, "message_bytes": job["message_bytes"]}
            return alone + exact("ring", wide) if job["nodes"] > 1 else alone
        return exact(algorithm, job)

    return price


price = _all_travels_between_nodes(price)
