# exercise: same_or_not
# told: a batch norm that measures nothing was taken for one that does
def what_differs(job):
    if "micro-batch" in (job["clip"], job["scaler"], job["scheduler"]):
        return "update"
    kinds = [layer["kind"] for layer in job["layers"]]
    if "batch_norm" in kinds or "sync_batch_norm" in kinds:
        return "statistics"
    dropped = [layer["p"] for layer in job["layers"] if layer["kind"] == "dropout" and layer["training"]]
    return "noise only" if any(dropped) else "no"
