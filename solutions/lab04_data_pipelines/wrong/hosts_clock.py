# exercise: whose_fault
# told: both rates were taken from the host's spans


def whose_fault(timeline):
    def spent_s(kinds):
        return sum(s["end_s"] - s["start_s"] for s in timeline if s["row"] == "host" and s["kind"] in kinds)

    ratio = spent_s(("next",)) / spent_s(("launch", "item"))
    return "data-bound" if ratio > 1.1 else "compute-bound" if ratio < 1 / 1.1 else "balanced"
