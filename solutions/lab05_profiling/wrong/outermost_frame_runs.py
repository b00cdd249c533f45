# exercise: read_a_sampler
# told: is taken from the wrong end of the stack


def sampler_table(samples, *, rate_hz, window):
    rows, count = {}, len(samples)
    for number, sample in enumerate(samples):
        if sample["idle"]:
            continue
        recent = number >= count - window
        for frame in set(sample["stack"]):
            row = rows.setdefault(frame, {"own": 0.0, "total": 0.0, "own_s": 0.0, "total_s": 0.0})
            own = frame == sample["stack"][0]
            row["own"] += own * recent / window
            row["total"] += recent / window
            row["own_s"] += own / rate_hz
            row["total_s"] += 1 / rate_hz
    active, gil = (sum(s) / count for s in ([not x["idle"] for x in samples], [x["gil"] for x in samples]))
    return {"active": active, "gil": gil, "rows": rows}
