# exercise: blame
# told: is no line of this timeline


def blame(spans, pattern):
    return max(spans, key=lambda span: span["end_s"] - span["start_s"])["name"]
