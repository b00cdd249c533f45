# exercise: broken_timers
# told: this timer's fault is not


def name_fault(report):
    once, last = (
        value / report["true_seconds_per_call"] for value in report["seconds_per_call"][:: len(report["calls"]) - 1]
    )
    if report["clock_resolution_s"] > report["true_seconds_per_call"]:
        return "clock too coarse"
    if report["seconds_per_call"][-1] < 1.3 * report["launch_s"]:
        return "no sync"
    if last < 0.9:
        return "cache-warm"
    return "cold first call" if once > 2 else "sync per call" if last > 1.02 else "none"
