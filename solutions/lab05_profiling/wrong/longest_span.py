# exercise: blame
# told: the longest is not the guilty one


def blame(spans, pattern):
    kinds = {"gpu": "kernel", "launch": "call", "synchronisation": "wait", "data": "load", "copy": "copy"}
    mine = [span for span in spans if span["kind"] == kinds[pattern]]
    if pattern == "launch":
        spent = {}
        for span in mine:
            spent[span["line"]] = spent.get(span["line"], 0.0) + span["end_s"] - span["start_s"]
        return max(spent, key=spent.get)
    return max(mine, key=lambda span: span["end_s"] - span["start_s"])["line"]
