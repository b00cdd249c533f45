# exercise: rank_gains
# told: what is not issued is still called for
def replayed_s(spans, mends):
    """A call is a call."""
    left = {name: mend["times"] for mend in mends for name in mend["names"]}
    ends, rows = [], {}
    for span in spans:
        times = left.get(span["name"], 1.0)
        lasts_s, after = span["end_s"] - span["start_s"], span["after"]
        if span["kind"] == "wait":
            lasts_s, after = 0.0, after if times else []
        elif span["kind"] != "call":
            lasts_s *= times
        row_s = rows.get(span["row"], 0.0)
        rows[span["row"]] = max([row_s, *(ends[at] for at in after)]) + lasts_s
        ends.append(rows[span["row"]])
    return max(ends)
