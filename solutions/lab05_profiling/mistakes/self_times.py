# %% mistake="all_descendants_taken_off"
# told: your code also subtracted the rows inside callees
def self_times(rows):
    times = {}
    for row in rows:
        inside_s = 0.0
        for other in rows:
            if other is not row and other["thread"] == row["thread"]:
                if (
                    row["start_s"] <= other["start_s"]
                    and other["end_s"] <= row["end_s"]
                ):
                    inside_s += other["end_s"] - other["start_s"]
        times[row["name"]] = (
            times.get(row["name"], 0.0) + row["end_s"] - row["start_s"] - inside_s
        )
    return times


# %% mistake="believes_the_cuda_column"
# told: your `ran_on()` always returned the GPU
def ran_on(entry, *, cpu_flop_per_s):
    return "gpu" if entry["cuda_s"] > 0 else "cpu"


# %% mistake="columns_alone"
# told: your answers depend only on the columns
def ran_on(entry, *, cpu_flop_per_s):
    return (
        "cpu"
        if abs(entry["cuda_s"] - entry["cpu_s"]) <= 0.05 * entry["cpu_s"]
        else "gpu"
    )


# %% mistake="five_per_cent_of_the_other_column"
# told: your code computes the 5 % from the wrong column
def ran_on(entry, *, cpu_flop_per_s):
    if entry["flop"] > cpu_flop_per_s * entry["cuda_s"]:
        return "gpu"
    return (
        "cpu"
        if abs(entry["cuda_s"] - entry["cpu_s"]) <= 0.05 * entry["cuda_s"]
        else "gpu"
    )


# %% mistake="self_times_in_microseconds"
# told: your self times are in microseconds
from functools import wraps


def _in_microseconds(exact):
    @wraps(exact)
    def self_times(rows):
        return {name: 1e6 * spent_s for name, spent_s in exact(rows).items()}

    return self_times


self_times = _in_microseconds(self_times)


# %% mistake="threads_thrown_together"
# told: your code treats rows of a different thread as nested
def self_times(rows):
    times, stack = {}, []
    for row in sorted(rows, key=lambda row: (row["start_s"], -row["end_s"])):
        while stack and stack[-1]["end_s"] <= row["start_s"]:
            stack.pop()
        inside = bool(stack) and stack[-1]["end_s"] >= row["end_s"]
        spent_s = row["end_s"] - row["start_s"]
        times[row["name"]] = times.get(row["name"], 0.0) + spent_s
        if inside:
            times[stack[-1]["name"]] -= min(spent_s, times[stack[-1]["name"]])
        stack.append(row)
    return times


# %% mistake="totals_for_self_times"
# told: has its total time instead of its self time
def self_times(rows):
    times = {}
    for row in rows:
        times[row["name"]] = times.get(row["name"], 0.0) + row["end_s"] - row["start_s"]
    return times


# %% mistake="touching_rows_are_inside"
# told: if one row ends exactly when another begins
# %% replace
while stack and stack[-1]["end_s"] <= row["start_s"]:
    stack.pop()
# %% by
while stack and stack[-1]["end_s"] < row["start_s"]:
    stack.pop()
