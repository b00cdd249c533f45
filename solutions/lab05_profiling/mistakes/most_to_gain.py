# %% mistake="changes_the_step_itself"
# told: your function modifies the given step
def without(step, cause):
    if cause == "launch":
        return captured(step)
    for operation in step:
        if cause == "kernels" and operation["op"] == "launch":
            operation["duration_s"] /= 2
        if cause == "copy" and operation["op"] == "copy":
            operation["pinned"] = True
    gone = {"synchronisation": ("item", "sync"), "data": ("load",)}.get(cause, ())
    return [operation for operation in step if operation["op"] not in gone]


# %% mistake="sums_instead_of_simulation"
# told: your speed-ups come from shares
def most_to_gain(step, machine):
    now_s = step_s(step, machine)
    kinds = {"kernels": "launch", "data": "load"}
    speedups = {}
    for cause in ("kernels", "launch", "synchronisation", "data", "copy"):
        removed_s = sum(
            o.get("duration_s", 0.0) for o in step if o["op"] == kinds.get(cause)
        )
        removed_s /= 2 if cause == "kernels" else 1
        speedups[cause] = now_s / max(now_s - removed_s, 0.1 * now_s)
    return max(speedups, key=speedups.get), speedups


# %% mistake="the_best_alone"
# told: wrong kind of answer
from functools import wraps


def _without_gains(exact):
    @wraps(exact)
    def most_to_gain(step, machine):
        return exact(step, machine)[0]

    return most_to_gain


most_to_gain = _without_gains(most_to_gain)


# %% mistake="upside_down"
# told: your speed-ups are inverted
def most_to_gain(step, machine):
    now_s = step_s(step, machine)
    causes = ("kernels", "launch", "synchronisation", "data", "copy")
    ratios = {cause: step_s(without(step, cause), machine) / now_s for cause in causes}
    return min(ratios, key=ratios.get), ratios
