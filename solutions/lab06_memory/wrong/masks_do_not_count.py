# exercise: same_or_not
# told: dropout draws other masks
from functools import wraps


def _other(exact):
    @wraps(exact)
    def what_differs(job):
        found = exact(job)
        return "no" if found == "noise only" else found

    return what_differs


what_differs = _other(what_differs)
