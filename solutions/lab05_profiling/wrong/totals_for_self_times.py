# exercise: self_times
# told: has its total time, not its self time


def self_times(rows):
    times = {}
    for row in rows:
        times[row["name"]] = times.get(row["name"], 0.0) + row["end_s"] - row["start_s"]
    return times
