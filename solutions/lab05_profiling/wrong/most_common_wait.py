# exercise: name_the_pattern
# told: this step is not bound by


def name_the_pattern(spans):
    waits = any(span["kind"] == "wait" and span["name"] != "copy" for span in spans)
    return "synchronisation" if waits else "data"
