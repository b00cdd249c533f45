# exercise: rank_gains
# told: gains are added up
def rank(spans, mends):
    """From the beginning."""
    picked, done, now_s = [], [], replayed_s(spans, [])
    first_s = now_s
    for _ in range(3):
        others = {name: mend for name, mend in mends.items() if mend not in done}
        after_s = {name: replayed_s(spans, [*done, others[name]]) for name in others}
        best = min(after_s, key=after_s.get)
        picked.append((best, first_s - after_s[best]))
        done, now_s = [*done, mends[best]], after_s[best]
    return picked
