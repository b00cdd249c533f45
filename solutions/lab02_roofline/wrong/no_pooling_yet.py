# exercise: intensity
# told: nothing came back for a pool
from functools import wraps


def _but_for_pool(whole):
    @wraps(whole)
    def work_of(op):
        return None if op["kind"] == "pool" else whole(op)

    return work_of


work_of = _but_for_pool(work_of)
