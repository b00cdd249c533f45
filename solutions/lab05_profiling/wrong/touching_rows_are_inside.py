# exercise: self_times
# told: a row that begins just where another one ends


def self_times(rows):
    times, around = {}, {}
    for row in sorted(rows, key=lambda row: (row["start_s"], -row["end_s"])):
        stack = around.setdefault(row["thread"], [])
        while stack and stack[-1]["end_s"] < row["start_s"]:
            stack.pop()
        spent_s = row["end_s"] - row["start_s"]
        times[row["name"]] = times.get(row["name"], 0.0) + spent_s
        if stack:
            times[stack[-1]["name"]] -= spent_s
        stack.append(row)
    return times
