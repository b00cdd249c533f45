# exercise: blame
# told: another line costs this step more by


def blame(spans, pattern):
    return min((span for span in spans if span["row"] != "host"), key=lambda span: span["start_s"])["line"]
