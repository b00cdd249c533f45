# exercise: rank_gains
# told: this is no gain but what a run takes, or what the mended spans lose
def rank(spans, mends):
    """What is left."""
    picked, done = [], []
    for _ in range(3):
        others = {name: mend for name, mend in mends.items() if mend not in done}
        after_s = {name: replayed_s(spans, [*done, others[name]]) for name in others}
        best = min(after_s, key=after_s.get)
        picked.append((best, after_s[best]))
        done = [*done, mends[best]]
    return picked
