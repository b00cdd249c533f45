# %% mistake="alone_and_sorted"
# told: your function ranks the fixes by what each of them gains alone
def rank(spans, mends):
    """All alone, sorted."""
    run_s = replayed_s(spans, [])
    gains = {name: run_s - replayed_s(spans, [mends[name]]) for name in mends}
    return sorted(gains.items(), key=lambda item: -item[1])[:3]


# %% mistake="calls_shrink"
# told: your replay shortens the host's calls together with their kernels
# %% replace
lasts_s = lasts_s if times else 0.0
# %% by
lasts_s = lasts_s * times


# %% mistake="calls_stay"
# told: your replay keeps the call of an operation that is not issued
def replayed_s(spans, mends):
    """A call is a call."""
    left = {name: mend["times"] for mend in mends for name in mend["names"]}
    ends, rows = [], {}
    for span in spans:
        times = left.get(span["name"], 1.0)
        lasts_s, after = span["end_s"] - span["start_s"], span["after"]
        if span["kind"] == "wait":
            lasts_s, after = 0.0, after if times else []
        elif span["kind"] != "call":
            lasts_s *= times
        row_s = rows.get(span["row"], 0.0)
        rows[span["row"]] = max([row_s, *(ends[at] for at in after)]) + lasts_s
        ends.append(rows[span["row"]])
    return max(ends)


# %% mistake="gains_added_up"
# told: your gains are running totals
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


# %% mistake="gains_as_shares"
# told: your function returns a gain as a share of the run
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


# %% mistake="gains_as_speed_ups"
# told: your function returns a gain as a speed-up
# %% replace
picked.append((best, now_s - after_s[best]))
# %% by
picked.append((best, now_s / after_s[best]))


# %% mistake="gains_negative"
# told: one of your gains has the wrong sign
# %% replace
picked.append((best, now_s - after_s[best]))
# %% by
picked.append((best, after_s[best] - now_s))


# %% mistake="gains_of_a_step"
# told: your function returns a gain for only one step
# %% replace
picked.append((best, now_s - after_s[best]))
# %% by
picked.append((best, (now_s - after_s[best]) / 4))


# %% mistake="later_gains_alone"
# told: your function returns the gain of a later fix as if it were the only fix
def rank(spans, mends):
    """The right order, and gains from the first run."""
    picked, run_s = [], replayed_s(spans, [])
    for _ in range(3):
        done = [mends[name] for name, _ in picked]
        after_s = {
            name: replayed_s(spans, [*done, mends[name]])
            for name in mends
            if mends[name] not in done
        }
        best = min(after_s, key=after_s.get)
        picked.append((best, run_s - replayed_s(spans, [mends[best]])))
    return picked


# %% mistake="nobody_waits"
# told: your replay starts spans before the spans that they need have ended
# %% replace
rows[span["row"]] = max([row_s, *(ends[at] for at in after)]) + lasts_s
# %% by
rows[span["row"]] = max([row_s, *(0.0 * at for at in after)]) + lasts_s


# %% mistake="one_mend_of_two"
# told: your replay applies only one of the two fixes
# %% replace
left[name] = left.get(name, 1.0) * mend["times"]
# %% by
left[name] = mend["times"] if mend is mends[-1] else 1.0


# %% mistake="rows_at_once"
# told: your replay runs spans of one row at the same time
# %% replace
row_s = rows.get(span["row"], 0.0)
# %% by
row_s = 0.0


# %% mistake="seconds_left"
# told: your function returns the time of a run instead of a gain
# %% replace
picked, done, now_s = [], [], replayed_s(spans, [])
# %% by
picked, done = [], []
# %% replace
picked.append((best, now_s - after_s[best]))
done, now_s = [*done, mends[best]], after_s[best]
# %% by
picked.append((best, after_s[best]))
done = [*done, mends[best]]


# %% mistake="shares_for_gains"
# told: your function uses shares of the timeline as gains
def replayed_s(spans, mends):
    """What the mended spans take is taken off."""
    left = {name: mend["times"] for mend in mends for name in mend["names"]}
    run_s = max(span["end_s"] for span in spans)
    for span in spans:
        if span["name"] in left:
            run_s -= (span["end_s"] - span["start_s"]) * (1 - left[span["name"]])
    return run_s


# %% mistake="shares_of_work"
# told: your function uses shares of the timeline as gains
# like: shares_for_gains
def replayed_s(spans, mends):
    """What work, kernels and copies take."""
    run_s = max(span["end_s"] for span in spans)
    left = {name: mend["times"] for mend in mends for name in mend["names"]}
    for span in spans:
        if span["kind"] not in ("call", "wait"):
            took_s = span["end_s"] - span["start_s"]
            run_s -= (1 - left.get(span["name"], 1.0)) * took_s
    return run_s


# %% mistake="shorter_is_gone"
# told: your replay treats shorter spans as if they were gone
# %% replace
times = left.get(span["name"], 1.0)
# %% by
times = left.get(span["name"], 1.0)
times = float(times == 1)


# %% mistake="starts_as_before"
# told: in your replay, no span starts sooner than in the timeline
# %% replace
row_s = rows.get(span["row"], 0.0)
# %% by
row_s = max(rows.get(span["row"], 0.0), span["start_s"])


# %% mistake="times_taken_off"
# told: your replay removes the time that should remain
# %% replace
left[name] = left.get(name, 1.0) * mend["times"]
# %% by
left[name] = left.get(name, 1.0) * (1 - mend["times"])


# %% mistake="two_mends"
# told: your ranking does not contain three different fixes
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


# %% mistake="waits_are_work"
# told: your replay treats a wait as if it were work
# %% replace
lasts_s, after = 0.0, after if times else []
# %% by
lasts_s, after = lasts_s * times, after if times else []


# %% mistake="waits_for_nothing"
# told: your replay keeps a wait that is not issued
# %% replace
lasts_s, after = 0.0, after if times else []
# %% by
lasts_s, after = 0.0, after


# %% mistake="worst_mend_first"
# told: your function chooses the fix with the smallest gain
# %% replace
best = min(after_s, key=after_s.get)
# %% by
best = max(after_s, key=after_s.get)


# %% mistake="last_factor"
# told: your replay applies only one of two fixes of the same operation
# %% replace
left[name] = left.get(name, 1.0) * mend["times"]
# %% by
left[name] = mend["times"]
