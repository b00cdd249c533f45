# %% mistake="always_sound"
# told: this timer's fault is not 'none'
def name_fault(report):
    return "none"


# %% mistake="longest_run_only"
# told: this timer's fault is not
def name_fault(report):
    ratio = report["seconds_per_call"][-1] / report["true_seconds_per_call"]
    if ratio < 0.3:
        return "no sync"
    return "cache-warm" if ratio < 0.9 else "sync per call" if ratio > 1.02 else "none"


# %% mistake="never_looks_at_the_timeline"
# told: this timer's fault is not
def name_fault(report):
    once, last = (
        value / report["true_seconds_per_call"]
        for value in report["seconds_per_call"][:: len(report["calls"]) - 1]
    )
    if report["clock_resolution_s"] > report["true_seconds_per_call"]:
        return "clock too coarse"
    if report["seconds_per_call"][-1] < 1.3 * report["launch_s"]:
        return "no sync"
    if last < 0.9:
        return "cache-warm"
    return "cold first call" if once > 2 else "sync per call" if last > 1.02 else "none"


# %% mistake="waits_of_the_check_too"
# told: you called every report 'sync per call', except those of a coarse clock
def name_fault(report):
    waits = [span for span in report["timeline"] if span["kind"] == "wait"]
    if report["clock_resolution_s"] > report["true_seconds_per_call"]:
        return "clock too coarse"
    if not waits:
        return "no sync"
    if len(waits) >= 4:
        return "sync per call"
    return (
        "cache-warm"
        if min(report["seconds_per_call"]) < report["true_seconds_per_call"]
        else "none"
    )
