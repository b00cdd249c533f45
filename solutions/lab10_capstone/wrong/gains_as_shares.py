# exercise: rank_gains
# told: a gain is given as a share of the run
def rank(spans, mends):
    """Per cent."""
    picked, done, now_s = [], [], replayed_s(spans, [])
    first_s = now_s
    for _ in range(3):
        others = {name: mend for name, mend in mends.items() if mend not in done}
        after_s = {name: replayed_s(spans, [*done, others[name]]) for name in others}
        best = min(after_s, key=after_s.get)
        picked.append((best, 100 * (now_s - after_s[best]) / first_s))
        done, now_s = [*done, mends[best]], after_s[best]
    return picked
