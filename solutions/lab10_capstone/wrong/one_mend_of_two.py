# exercise: rank_gains
# told: only one of two mends is done
def replayed_s(spans, mends):
    """The last mend alone."""
    last = mends[-1] if mends else {"names": [], "times": 1.0}
    left = dict.fromkeys(last["names"], last["times"])
    ends, rows = [], {}
    for span in spans:
        times = left.get(span["name"], 1.0)
        lasts_s, after = span["end_s"] - span["start_s"], span["after"]
        if span["kind"] == "wait":
            lasts_s, after = 0.0, after if times else []
        elif span["kind"] == "call":
            lasts_s = lasts_s if times else 0.0
        else:
            lasts_s *= times
        row_s = rows.get(span["row"], 0.0)
        rows[span["row"]] = max([row_s, *(ends[at] for at in after)]) + lasts_s
        ends.append(rows[span["row"]])
    return max(ends)
