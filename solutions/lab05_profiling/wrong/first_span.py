# exercise: blame
# told: the line of the first span came back


def blame(spans, pattern):
    return min((span for span in spans if span["row"] != "host"), key=lambda span: span["start_s"])["line"]
