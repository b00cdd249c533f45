# exercise: whose_fault
# told: balanced was drawn too widely


def whose_fault(timeline):
    def batch_s(row):
        spans = {}
        for span in timeline:
            if span["row"].startswith(row):
                spans.setdefault(span["row"], []).append(span["end_s"] - span["start_s"])
        later = [time_s for times_s in spans.values() for time_s in times_s[1:]]
        return sum(later) / len(later) / len(spans)

    ratio = batch_s("worker") / batch_s("device")
    return "data-bound" if ratio > 1.25 else "compute-bound" if ratio < 1 / 1.25 else "balanced"
