# exercise: rank_gains
# told: the mend that gains least comes first
def rank(spans, mends):
    """The longest run."""
    picked, done, now_s = [], [], replayed_s(spans, [])
    for _ in range(3):
        others = {name: mend for name, mend in mends.items() if mend not in done}
        after_s = {name: replayed_s(spans, [*done, others[name]]) for name in others}
        best = max(after_s, key=after_s.get)
        picked.append((best, now_s - after_s[best]))
        done, now_s = [*done, mends[best]], after_s[best]
    return picked
