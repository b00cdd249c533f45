# exercise: most_to_gain
# told: worked out from shares


def most_to_gain(step, machine):
    now_s = step_s(step, machine)
    kinds = {"kernels": "launch", "data": "load"}
    speedups = {}
    for cause in ("kernels", "launch", "synchronisation", "data", "copy"):
        removed_s = sum(o.get("duration_s", 0.0) for o in step if o["op"] == kinds.get(cause))
        removed_s /= 2 if cause == "kernels" else 1
        speedups[cause] = now_s / max(now_s - removed_s, 0.1 * now_s)
    return max(speedups, key=speedups.get), speedups
