# exercise: read_a_sampler
# told: a frame that is on a stack twice was counted twice


def sampler_table(samples, *, rate_hz, window):
    rows = {}
    for number, sample in enumerate(samples):
        if not sample["idle"]:
            for frame in sample["stack"]:
                row = rows.setdefault(frame, {"own": 0.0, "total": 0.0, "own_s": 0.0, "total_s": 0.0})
                row["total_s"] += 1 / rate_hz
            for frame in set(sample["stack"]):
                rows[frame]["total"] += (number >= len(samples) - window) / window
            rows[sample["stack"][-1]]["own_s"] += 1 / rate_hz
            rows[sample["stack"][-1]]["own"] += (number >= len(samples) - window) / window
    count = len(samples)
    active, gil = (sum(s) / count for s in ([not x["idle"] for x in samples], [x["gil"] for x in samples]))
    return {"active": active, "gil": gil, "rows": rows}
