# exercise: broken_timers
# told: this timer's fault is not


def name_fault(report):
    ratio = report["seconds_per_call"][-1] / report["true_seconds_per_call"]
    if ratio < 0.3:
        return "no sync"
    return "cache-warm" if ratio < 0.9 else "sync per call" if ratio > 1.02 else "none"
