# exercise: rank_gains
# told: shares are read as gains
def replayed_s(spans, mends):
    """What the mended spans take is taken off."""
    left = {name: mend["times"] for mend in mends for name in mend["names"]}
    run_s = max(span["end_s"] for span in spans)
    for span in spans:
        if span["name"] in left:
            run_s -= (span["end_s"] - span["start_s"]) * (1 - left[span["name"]])
    return run_s
