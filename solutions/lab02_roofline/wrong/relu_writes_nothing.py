# exercise: intensity
# told: the elements of a relu were counted once
from functools import wraps


def _but_for_relu(whole):
    @wraps(whole)
    def work_of(op):
        flop, moved_bytes = whole(op)
        return flop, moved_bytes // 2 if op["kind"] == "relu" else moved_bytes

    return work_of


work_of = _but_for_relu(work_of)
