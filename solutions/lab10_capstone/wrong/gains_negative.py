# exercise: rank_gains
# told: a gain has the wrong sign
def rank(spans, mends):
    """After less before."""
    picked, done, now_s = [], [], replayed_s(spans, [])
    for _ in range(3):
        others = {name: mend for name, mend in mends.items() if mend not in done}
        after_s = {name: replayed_s(spans, [*done, others[name]]) for name in others}
        best = min(after_s, key=after_s.get)
        picked.append((best, after_s[best] - now_s))
        done, now_s = [*done, mends[best]], after_s[best]
    return picked
