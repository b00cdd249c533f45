# exercise: read_a_sampler
# told: is of the whole run


def sampler_table(samples, *, rate_hz, window):
    rows, count = {}, len(samples)
    for sample in samples:
        if sample["idle"]:
            continue
        for frame in set(sample["stack"]):
            row = rows.setdefault(frame, {"own": 0.0, "total": 0.0, "own_s": 0.0, "total_s": 0.0})
            own = frame == sample["stack"][-1]
            row["own"] += own / count
            row["total"] += 1 / count
            row["own_s"] += own / rate_hz
            row["total_s"] += 1 / rate_hz
    active, gil = (sum(s) / count for s in ([not x["idle"] for x in samples], [x["gil"] for x in samples]))
    return {"active": active, "gil": gil, "rows": rows}
