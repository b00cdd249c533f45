# exercise: rank_gains
# told: the ranking is not of three different mends
def rank(spans, mends):
    """Two."""
    picked, done, now_s = [], [], replayed_s(spans, [])
    for _ in range(2):
        others = {name: mend for name, mend in mends.items() if mend not in done}
        after_s = {name: replayed_s(spans, [*done, others[name]]) for name in others}
        best = min(after_s, key=after_s.get)
        picked.append((best, now_s - after_s[best]))
        done, now_s = [*done, mends[best]], after_s[best]
    return picked
