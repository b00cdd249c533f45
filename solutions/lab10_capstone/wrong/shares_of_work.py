# exercise: rank_gains
# told: shares are read as gains
# like: shares_for_gains.py
def replayed_s(spans, mends):
    """What work, kernels and copies take."""
    run_s = max(span["end_s"] for span in spans)
    left = {name: mend["times"] for mend in mends for name in mend["names"]}
    for span in spans:
        if span["kind"] not in ("call", "wait"):
            took_s = span["end_s"] - span["start_s"]
            run_s -= (1 - left.get(span["name"], 1.0)) * took_s
    return run_s
