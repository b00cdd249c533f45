# exercise: broken_timers
# told: waits after the last reading were counted as well


def name_fault(report):
    waits = [span for span in report["timeline"] if span["kind"] == "wait"]
    if report["clock_resolution_s"] > report["true_seconds_per_call"]:
        return "clock too coarse"
    if not waits:
        return "no sync"
    if len(waits) >= 4:
        return "sync per call"
    return "cache-warm" if min(report["seconds_per_call"]) < report["true_seconds_per_call"] else "none"
