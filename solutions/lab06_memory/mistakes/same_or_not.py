# %% mistake="clipping_is_harmless"
# told: your answer treats clipping each micro-batch as harmless
from functools import wraps


def _other(exact):
    @wraps(exact)
    def what_differs(job):
        return exact({**job, "clip": ""})

    return what_differs


what_differs = _other(what_differs)


# %% mistake="every_norm_measures"
# told: your answer treats a norm within each example like one over the batch
from functools import wraps


def _other(exact):
    @wraps(exact)
    def what_differs(job):
        found = exact(job)
        norms = [
            layer
            for layer in job["layers"]
            if layer["kind"] in ("layer_norm", "group_norm")
        ]
        return "statistics" if norms and found != "update" else found

    return what_differs


what_differs = _other(what_differs)


# %% mistake="frozen_norm_differs"
# told: your answer treats a batch norm in eval mode like one in training
def what_differs(job):
    if "micro-batch" in (job["clip"], job["scaler"], job["scheduler"]):
        return "update"
    kinds = [layer["kind"] for layer in job["layers"]]
    if "batch_norm" in kinds or "sync_batch_norm" in kinds:
        return "statistics"
    dropped = [
        layer["p"]
        for layer in job["layers"]
        if layer["kind"] == "dropout" and layer["training"]
    ]
    return "noise only" if any(dropped) else "no"


# %% mistake="masks_do_not_count"
# told: your answer overlooks a dropout in training
from functools import wraps


def _other(exact):
    @wraps(exact)
    def what_differs(job):
        found = exact(job)
        return "no" if found == "noise only" else found

    return what_differs


what_differs = _other(what_differs)


# %% mistake="ranks_for_parts"
# told: your answer treats micro-batches like ranks
from functools import wraps


def _other(exact):
    @wraps(exact)
    def what_differs(job):
        kept = [layer for layer in job["layers"] if layer["kind"] != "sync_batch_norm"]
        return exact({**job, "layers": kept})

    return what_differs


what_differs = _other(what_differs)
