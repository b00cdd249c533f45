# exercise: whose_fault
# told: this loop is not


def whose_fault(timeline):
    steps = [(span["start_s"], span["end_s"]) for span in timeline if span["row"] == "device"][6:]
    busy_s = sum(stop - start for start, stop in steps)
    share = 1 - busy_s / (steps[-1][1] - steps[0][0])
    return "data-bound" if share > 0.12 else "compute-bound" if share < 0.02 else "balanced"
