# %% mistake="first_window"
# told: your code takes the window from the first samples, not from the last
from functools import wraps


def _of_the_first(exact):
    @wraps(exact)
    def sampler_table(samples, *, rate_hz, window):
        table, first = exact(samples, rate_hz=rate_hz, window=window), samples[:window]
        for frame, row in table["rows"].items():
            stacks = [sample["stack"] for sample in first if not sample["idle"]]
            row["own"] = sum(stack[-1] == frame for stack in stacks) / window
            row["total"] = sum(frame in stack for stack in stacks) / window
        return table

    return sampler_table


sampler_table = _of_the_first(sampler_table)


# %% mistake="outermost_frame_runs"
# told: comes from the wrong end of the stack
def sampler_table(samples, *, rate_hz, window):
    rows, count = {}, len(samples)
    for number, sample in enumerate(samples):
        if sample["idle"]:
            continue
        recent = number >= count - window
        for frame in set(sample["stack"]):
            row = rows.setdefault(
                frame, {"own": 0.0, "total": 0.0, "own_s": 0.0, "total_s": 0.0}
            )
            own = frame == sample["stack"][0]
            row["own"] += own * recent / window
            row["total"] += recent / window
            row["own_s"] += own / rate_hz
            row["total_s"] += 1 / rate_hz
    active, gil = (
        sum(s) / count
        for s in ([not x["idle"] for x in samples], [x["gil"] for x in samples])
    )
    return {"active": active, "gil": gil, "rows": rows}


# %% mistake="recursion_counts_twice"
# told: your code counts a frame twice if it is on a stack twice
def sampler_table(samples, *, rate_hz, window):
    rows = {}
    for number, sample in enumerate(samples):
        if not sample["idle"]:
            for frame in sample["stack"]:
                row = rows.setdefault(
                    frame, {"own": 0.0, "total": 0.0, "own_s": 0.0, "total_s": 0.0}
                )
                row["total_s"] += 1 / rate_hz
            for frame in set(sample["stack"]):
                rows[frame]["total"] += (number >= len(samples) - window) / window
            rows[sample["stack"][-1]]["own_s"] += 1 / rate_hz
            rows[sample["stack"][-1]]["own"] += (
                number >= len(samples) - window
            ) / window
    count = len(samples)
    active, gil = (
        sum(s) / count
        for s in ([not x["idle"] for x in samples], [x["gil"] for x in samples])
    )
    return {"active": active, "gil": gil, "rows": rows}


# %% mistake="shares_in_percent"
# told: your shares are percentages
from functools import wraps


def _in_percent(exact):
    @wraps(exact)
    def sampler_table(samples, *, rate_hz, window):
        table = exact(samples, rate_hz=rate_hz, window=window)
        for row in table["rows"].values():
            row["own"], row["total"] = 100 * row["own"], 100 * row["total"]
        return table

    return sampler_table


sampler_table = _in_percent(sampler_table)


# %% mistake="shares_of_active_samples"
# told: your code divides the shares by the number of active samples only
from functools import wraps


def _of_the_active(exact):
    @wraps(exact)
    def sampler_table(samples, *, rate_hz, window):
        table = exact(samples, rate_hz=rate_hz, window=window)
        active = sum(not sample["idle"] for sample in samples[-window:])
        for row in table["rows"].values():
            row["own"], row["total"] = (
                row["own"] * window / active,
                row["total"] * window / active,
            )
        return table

    return sampler_table


sampler_table = _of_the_active(sampler_table)


# %% mistake="shares_of_the_run"
# told: covers the whole run
def sampler_table(samples, *, rate_hz, window):
    rows, count = {}, len(samples)
    for sample in samples:
        if sample["idle"]:
            continue
        for frame in set(sample["stack"]):
            row = rows.setdefault(
                frame, {"own": 0.0, "total": 0.0, "own_s": 0.0, "total_s": 0.0}
            )
            own = frame == sample["stack"][-1]
            row["own"] += own / count
            row["total"] += 1 / count
            row["own_s"] += own / rate_hz
            row["total_s"] += 1 / rate_hz
    active, gil = (
        sum(s) / count
        for s in ([not x["idle"] for x in samples], [x["gil"] for x in samples])
    )
    return {"active": active, "gil": gil, "rows": rows}
