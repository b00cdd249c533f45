# exercise: rank_gains
# told: a later mend's gain is not what it gains alone
def rank(spans, mends):
    """The right order, and gains from the first run."""
    picked, run_s = [], replayed_s(spans, [])
    for _ in range(3):
        done = [mends[name] for name, _ in picked]
        after_s = {name: replayed_s(spans, [*done, mends[name]]) for name in mends if mends[name] not in done}
        best = min(after_s, key=after_s.get)
        picked.append((best, run_s - replayed_s(spans, [mends[best]])))
    return picked
