# exercise: same_or_not
# told: a norm over single examples was taken for one over the batch
from functools import wraps


def _other(exact):
    @wraps(exact)
    def what_differs(job):
        found = exact(job)
        norms = [layer for layer in job["layers"] if layer["kind"] in ("layer_norm", "group_norm")]
        return "statistics" if norms and found != "update" else found

    return what_differs


what_differs = _other(what_differs)
