# exercise: rank_gains
# told: mends are ranked by what each gains alone
def rank(spans, mends):
    """All alone, sorted."""
    run_s = replayed_s(spans, [])
    gains = {name: run_s - replayed_s(spans, [mends[name]]) for name in mends}
    return sorted(gains.items(), key=lambda item: -item[1])[:3]
