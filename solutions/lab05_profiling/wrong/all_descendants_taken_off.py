# exercise: self_times
# told: the rows inside callees were taken off too


def self_times(rows):
    times = {}
    for row in rows:
        inside_s = 0.0
        for other in rows:
            if other is not row and other["thread"] == row["thread"]:
                if row["start_s"] <= other["start_s"] and other["end_s"] <= row["end_s"]:
                    inside_s += other["end_s"] - other["start_s"]
        times[row["name"]] = times.get(row["name"], 0.0) + row["end_s"] - row["start_s"] - inside_s
    return times
