# exercise: name_the_pattern
# told: this step is not bound by


def name_the_pattern(spans):
    sums = {"gpu": 0.0, "launch": 0.0, "data": 0.0, "copy": 0.0}
    names = {"kernel": "gpu", "call": "launch", "python": "launch", "load": "data", "copy": "copy"}
    for span in spans:
        if span["kind"] in names:
            sums[names[span["kind"]]] += span["end_s"] - span["start_s"]
    return "data" if sums["data"] > 0 else max(sums, key=sums.get)
