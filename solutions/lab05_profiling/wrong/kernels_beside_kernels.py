# exercise: blame
# told: another line costs this step more by its kernels


_right_blame = blame


def blame(spans, pattern):
    if pattern != "gpu":
        return _right_blame(spans, pattern)
    spent = {}
    for span in spans:
        if span["kind"] == "kernel":
            spent[span["line"]] = spent.get(span["line"], 0.0) + span["end_s"] - span["start_s"]
    return max(spent, key=spent.get)
