# %% mistake="always_the_data"
# told: this loop is not data-bound
# like: workers_not_counted
def whose_fault(timeline):
    return "data-bound"


# %% mistake="an_idle_device_waits_for_data"
# told: this loop is not
def whose_fault(timeline):
    steps = [
        (span["start_s"], span["end_s"]) for span in timeline if span["row"] == "device"
    ][6:]
    busy_s = sum(stop - start for start, stop in steps)
    share = 1 - busy_s / (steps[-1][1] - steps[0][0])
    return (
        "data-bound"
        if share > 0.12
        else "compute-bound"
        if share < 0.02
        else "balanced"
    )


# %% mistake="balanced_up_to_five_percent"
# told: your range for 'balanced' is too narrow
def whose_fault(timeline):
    def batch_s(row):
        spans = {}
        for span in timeline:
            if span["row"].startswith(row):
                spans.setdefault(span["row"], []).append(
                    span["end_s"] - span["start_s"]
                )
        later = [time_s for times_s in spans.values() for time_s in times_s[1:]]
        return sum(later) / len(later) / len(spans)

    ratio = batch_s("worker") / batch_s("device")
    return (
        "data-bound"
        if ratio > 1.05
        else "compute-bound"
        if ratio < 1 / 1.05
        else "balanced"
    )


# %% mistake="bound_from_a_quarter_more"
# told: your range for 'balanced' is too wide
def whose_fault(timeline):
    def batch_s(row):
        spans = {}
        for span in timeline:
            if span["row"].startswith(row):
                spans.setdefault(span["row"], []).append(
                    span["end_s"] - span["start_s"]
                )
        later = [time_s for times_s in spans.values() for time_s in times_s[1:]]
        return sum(later) / len(later) / len(spans)

    ratio = batch_s("worker") / batch_s("device")
    return (
        "data-bound"
        if ratio > 1.25
        else "compute-bound"
        if ratio < 1 / 1.25
        else "balanced"
    )


# %% mistake="hosts_clock"
# told: your code computes both rates from the host's spans
def whose_fault(timeline):
    def spent_s(kinds):
        return sum(
            s["end_s"] - s["start_s"]
            for s in timeline
            if s["row"] == "host" and s["kind"] in kinds
        )

    ratio = spent_s(("next",)) / spent_s(("launch", "item"))
    return (
        "data-bound"
        if ratio > 1.1
        else "compute-bound"
        if ratio < 1 / 1.1
        else "balanced"
    )


# %% mistake="second_batches_left_out"
# told: your code seems to leave a slow batch out of a worker's rate
def whose_fault(timeline):
    def batch_s(row):
        spans = {}
        for span in timeline:
            if span["row"].startswith(row):
                spans.setdefault(span["row"], []).append(
                    span["end_s"] - span["start_s"]
                )
        later = [time_s for times_s in spans.values() for time_s in times_s[2:]]
        return sum(later) / len(later) / len(spans)

    ratio = batch_s("worker") / batch_s("device")
    return (
        "data-bound"
        if ratio > 1.1
        else "compute-bound"
        if ratio < 1 / 1.1
        else "balanced"
    )


# %% mistake="workers_not_counted"
# told: this loop is not
def whose_fault(timeline):
    def mean_s(row):
        times_s = [
            s["end_s"] - s["start_s"] for s in timeline if s["row"].startswith(row)
        ]
        return sum(times_s) / len(times_s)

    ratio = mean_s("worker") / mean_s("device")
    return (
        "data-bound"
        if ratio > 1.1
        else "compute-bound"
        if ratio < 1 / 1.1
        else "balanced"
    )
