# exercise: whose_fault
# told: this loop is not


def whose_fault(timeline):
    def mean_s(row):
        times_s = [s["end_s"] - s["start_s"] for s in timeline if s["row"].startswith(row)]
        return sum(times_s) / len(times_s)

    ratio = mean_s("worker") / mean_s("device")
    return "data-bound" if ratio > 1.1 else "compute-bound" if ratio < 1 / 1.1 else "balanced"
