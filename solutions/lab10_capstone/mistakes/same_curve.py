# %% mistake="all_in_one_mean"
# told: ups and downs cancel in a single mean
def same(curves_a, curves_b):
    """One mean."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    p = sign_flip_p((curves_b - curves_a).mean(axis=1))
    return "changed" if p <= ALPHA else "noise"


# %% mistake="better_is_no_change"
# told: your function misses changes for the better
# %% replace
p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
return "changed" if len(parts) * p <= ALPHA else "noise"
# %% by
worse = max(part.mean(axis=1).min() for part in parts)
return "changed" if worse > 0 else "noise"


# %% mistake="equal_by_default"
# told: your function uses a tolerance other than ROUNDING
def same(curves_a, curves_b):
    """numpy's own tolerance."""
    if np.allclose(curves_a, curves_b):
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if 4 * p <= ALPHA else "noise"


# %% mistake="equal_on_average"
# told: your function ignores a difference at a single point
def same(curves_a, curves_b):
    """Equal in the mean."""
    if np.mean(np.abs(curves_b / curves_a - 1)) <= ROUNDING:
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if 4 * p <= ALPHA else "noise"


# %% mistake="equal_to_the_bit"
# told: your function does not return "equal" for curves that differ only by rounding
def same(curves_a, curves_b):
    """To the bit."""
    if (curves_a == curves_b).all():
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if 4 * p <= ALPHA else "noise"


# %% mistake="equal_within_a_percent"
# told: your function returns "equal" for noise
def same(curves_a, curves_b):
    """Within 5 %."""
    if np.allclose(curves_a, curves_b, rtol=0.05):
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if 4 * p <= ALPHA else "noise"


# %% mistake="first_quarter_alone"
# told: your function misses changes at the end of the curves
def same(curves_a, curves_b):
    """The beginning."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    p = sign_flip_p((curves_b - curves_a)[:, :4].mean(axis=1))
    return "changed" if p <= ALPHA else "noise"


# %% mistake="four_looks_for_one"
# told: your function gives too many false alarms
# %% replace
return "changed" if len(parts) * p <= ALPHA else "noise"
# %% by
return "changed" if p <= 0.05 else "noise"


# %% mistake="four_strict_looks_for_one"
# told: your function gives too many false alarms
# like: four_looks_for_one
# %% replace
return "changed" if len(parts) * p <= ALPHA else "noise"
# %% by
return "changed" if p <= ALPHA else "noise"


# %% mistake="last_quarter_alone"
# told: your function misses changes at the beginning of the curves
def same(curves_a, curves_b):
    """The end."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    p = sign_flip_p((curves_b - curves_a)[:, -4:].mean(axis=1))
    return "changed" if p <= ALPHA else "noise"


# %% mistake="mean_over_a_percent"
# told: your function returns "changed" for noise if the difference is large
# like: within_five_percent
def same(curves_a, curves_b):
    """A mean over seeds, and a tolerance."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    far = np.abs((curves_b / curves_a - 1).mean(axis=0)).max()
    return "changed" if far > 0.005 else "noise"


# %% mistake="mean_over_two_percent"
# told: your function misses changes if the difference is small
def same(curves_a, curves_b):
    """A mean over seeds, and a large tolerance."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    far = np.abs((curves_b / curves_a - 1).mean(axis=0)).max()
    return "changed" if far > 0.02 else "noise"


# %% mistake="more_extreme_alone"
# told: your function does not count the observed pattern
# %% replace
return float(np.mean(sums >= np.abs(np.sum(differences)) - TINY))
# %% by
seen = np.abs(np.sum(differences))
return float(np.mean(sums > seen + TINY))


# %% mistake="never_noise"
# told: your function returns "changed" for nearly all noise
def same(curves_a, curves_b):
    """Not equal is changed."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    return "changed"


# %% mistake="one_seed"
# told: the order of the seeds changes your answer
def same(curves_a, curves_b):
    """The first seed."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    difference = curves_b[0] - curves_a[0]
    spread = difference.std() / 2
    parts = [abs(part.mean()) for part in np.array_split(difference, 4)]
    return "changed" if max(parts) > 3 * spread else "noise"


# %% mistake="one_sided_p"
# told: your function counts only one direction, or its patterns leave differences out
def sign_flip_p(differences):
    """One side."""
    patterns = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    sums = patterns @ np.asarray(differences)
    seen = np.abs(np.sum(differences))
    return float(np.mean(sums >= seen - TINY))


# %% mistake="p_as_a_count"
# told: your function returns a number of patterns instead of a share
# %% replace
return float(np.mean(sums >= np.abs(np.sum(differences)) - TINY))
# %% by
seen = np.abs(np.sum(differences))
return float(np.sum(sums >= seen - TINY))


# %% mistake="p_of_drawn_signs"
# told: p is not a share of all 2^n patterns
def sign_flip_p(differences):
    """200 patterns, drawn."""
    drawn = np.random.default_rng(0).choice((1, -1), size=(200, len(differences)))
    sums = np.abs(drawn @ np.asarray(differences))
    return float(np.mean(sums >= np.abs(np.sum(differences)) - TINY))


# %% mistake="p_turned_round"
# told: your function returns the share of the other patterns
# %% replace
return float(np.mean(sums >= np.abs(np.sum(differences)) - TINY))
# %% by
seen = np.abs(np.sum(differences))
return float(1 - np.mean(sums >= seen - TINY))


# %% mistake="p_without_tiny"
# told: your function treats sums that are equal except for rounding as different
# %% replace
return float(np.mean(sums >= np.abs(np.sum(differences)) - TINY))
# %% by
return float(np.mean(sums >= np.abs(np.sum(differences))))


# %% mistake="relative_mean_of_all"
# told: ups and downs cancel in a single mean
# like: all_in_one_mean
def same(curves_a, curves_b):
    """One relative mean a seed."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    p = sign_flip_p((curves_b / curves_a - 1).mean(axis=1))
    return "changed" if p <= ALPHA else "noise"


# %% mistake="seeds_apart"
# told: your function does not pair the two curves of a seed
def same(curves_a, curves_b):
    """Two samples."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    for a, b in zip(
        np.array_split(curves_a, 4, 1), np.array_split(curves_b, 4, 1), strict=True
    ):
        a, b = a.mean(axis=1), b.mean(axis=1)
        apart = abs(a.mean() - b.mean())
        if apart > 2.5 * np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a)):
            return "changed"
    return "noise"


# %% mistake="unpaired_errors"
# told: your function does not pair the two curves of a seed
# like: seeds_apart
def same(curves_a, curves_b):
    """Two standard errors of the seeds, at any point."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    gap = np.abs((curves_b - curves_a).mean(axis=0))
    return (
        "changed" if np.any(gap > 2 * curves_a.std(axis=0) / np.sqrt(10)) else "noise"
    )


# %% mistake="within_five_percent"
# told: your function returns "changed" for noise if the difference is large
def same(curves_a, curves_b):
    """A tolerance."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    far = np.abs(curves_b / curves_a - 1).max()
    return "changed" if far > 0.03 else "noise"


# %% mistake="absolute_rounding"
# told: your function returns "equal" for small losses that differ by more than rounding
# %% replace
if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
    return "equal"
# %% by
if np.allclose(curves_a, curves_b, rtol=0.0, atol=ROUNDING):
    return "equal"


# %% mistake="seeds_sorted"
# told: your function does not pair the two curves of a seed
# like: seeds_apart
# %% replace
parts = np.array_split(curves_b - curves_a, 4, axis=1)
# %% by
before = curves_a[np.argsort(curves_a.mean(axis=1))]
after = curves_b[np.argsort(curves_b[:, -1])]
parts = np.array_split(after - before, 4, axis=1)
