# exercise: self_times
# told: rows of another thread were taken to lie inside


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
