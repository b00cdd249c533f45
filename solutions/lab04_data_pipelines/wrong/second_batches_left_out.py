# exercise: whose_fault
# told: a slow batch was left out of a worker's rate


def whose_fault(timeline):
    def batch_s(row):
        spans = {}
        for span in timeline:
            if span["row"].startswith(row):
                spans.setdefault(span["row"], []).append(span["end_s"] - span["start_s"])
        later = [time_s for times_s in spans.values() for time_s in times_s[2:]]
        return sum(later) / len(later) / len(spans)

    ratio = batch_s("worker") / batch_s("device")
    return "data-bound" if ratio > 1.1 else "compute-bound" if ratio < 1 / 1.1 else "balanced"
