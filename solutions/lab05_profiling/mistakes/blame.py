# %% mistake="first_span"
# told: you returned the line of the first span
def blame(spans, pattern):
    return min(
        (span for span in spans if span["row"] != "host"),
        key=lambda span: span["start_s"],
    )["line"]


# %% mistake="kernels_beside_kernels"
# told: a different line costs this step more time by its kernels
_right_blame = blame


def blame(spans, pattern):
    if pattern != "gpu":
        return _right_blame(spans, pattern)
    spent = {}
    for span in spans:
        if span["kind"] == "kernel":
            spent[span["line"]] = (
                spent.get(span["line"], 0.0) + span["end_s"] - span["start_s"]
            )
    return max(spent, key=spent.get)


# %% mistake="longest_span"
# told: you returned the line with the pattern's longest span
def blame(spans, pattern):
    kinds = {
        "gpu": "kernel",
        "launch": "call",
        "synchronisation": "wait",
        "data": "load",
        "copy": "copy",
    }
    mine = [span for span in spans if span["kind"] == kinds[pattern]]
    if pattern == "launch":
        spent = {}
        for span in mine:
            spent[span["line"]] = (
                spent.get(span["line"], 0.0) + span["end_s"] - span["start_s"]
            )
        return max(spent, key=spent.get)
    return max(mine, key=lambda span: span["end_s"] - span["start_s"])["line"]


# %% mistake="names_the_operation"
# told: is not a line of this timeline
def blame(spans, pattern):
    return max(spans, key=lambda span: span["end_s"] - span["start_s"])["name"]
