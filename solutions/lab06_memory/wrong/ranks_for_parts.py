# exercise: same_or_not
# told: ranks were taken for micro-batches
from functools import wraps


def _other(exact):
    @wraps(exact)
    def what_differs(job):
        kept = [layer for layer in job["layers"] if layer["kind"] != "sync_batch_norm"]
        return exact({**job, "layers": kept})

    return what_differs


what_differs = _other(what_differs)
