# %% mistake="all_in_one_mean"
# told: ups and downs cancel in a single mean
def same(curves_a, curves_b):
    """One mean."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    p = sign_flip_p((curves_b - curves_a).mean(axis=1))
    return "changed" if p <= ALPHA else "noise"


# %% mistake="better_is_no_change"
# told: changes for the better are missed
# %% replace
p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
return "changed" if len(parts) * p <= ALPHA else "noise"
# %% by
worse = max(part.mean(axis=1).min() for part in parts)
return "changed" if worse > 0 else "noise"


# %% mistake="equal_by_default"
# told: a tolerance other than ROUNDING is used
def same(curves_a, curves_b):
    """numpy's own tolerance."""
    if np.allclose(curves_a, curves_b):
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if 4 * p <= ALPHA else "noise"


# %% mistake="equal_on_average"
# told: a difference at a single point is ignored
def same(curves_a, curves_b):
    """Equal in the mean."""
    if np.mean(np.abs(curves_b / curves_a - 1)) <= ROUNDING:
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if 4 * p <= ALPHA else "noise"


# %% mistake="equal_to_the_bit"
# told: curves that differ only by rounding are not called equal
def same(curves_a, curves_b):
    """To the bit."""
    if (curves_a == curves_b).all():
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if 4 * p <= ALPHA else "noise"


# %% mistake="equal_within_a_percent"
# told: noise is called equal
def same(curves_a, curves_b):
    """Within 5 %."""
    if np.allclose(curves_a, curves_b, rtol=0.05):
        return "equal"
    parts = np.array_split(curves_b - curves_a, 4, axis=1)
    p = min(sign_flip_p(part.mean(axis=1)) for part in parts)
    return "changed" if 4 * p <= ALPHA else "noise"


# %% mistake="first_quarter_alone"
# told: changes at the end of the curves are missed
def same(curves_a, curves_b):
    """The beginning."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    p = sign_flip_p((curves_b - curves_a)[:, :4].mean(axis=1))
    return "changed" if p <= ALPHA else "noise"


# %% mistake="four_looks_for_one"
# told: false alarms are too frequent
# %% replace
return "changed" if len(parts) * p <= ALPHA else "noise"
# %% by
return "changed" if p <= 0.05 else "noise"


# %% mistake="four_strict_looks_for_one"
# told: false alarms are too frequent
# like: four_looks_for_one
# %% replace
return "changed" if len(parts) * p <= ALPHA else "noise"
# %% by
return "changed" if p <= ALPHA else "noise"


# %% mistake="last_quarter_alone"
# told: changes at the beginning of the curves are missed
def same(curves_a, curves_b):
    """The end."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    p = sign_flip_p((curves_b - curves_a)[:, -4:].mean(axis=1))
    return "changed" if p <= ALPHA else "noise"


# %% mistake="mean_over_a_percent"
# told: noise is called a change if the difference is large
# like: within_five_percent
def same(curves_a, curves_b):
    """A mean over seeds, and a tolerance."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    far = np.abs((curves_b / curves_a - 1).mean(axis=0)).max()
    return "changed" if far > 0.005 else "noise"


# %% mistake="mean_over_two_percent"
# told: changes are missed if the difference is small
def same(curves_a, curves_b):
    """A mean over seeds, and a large tolerance."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    far = np.abs((curves_b / curves_a - 1).mean(axis=0)).max()
    return "changed" if far > 0.02 else "noise"


# %% mistake="more_extreme_alone"
# told: the observed pattern is not counted among the patterns
# %% replace
return float(np.mean(sums >= np.abs(np.sum(differences)) - TINY))
# %% by
seen = np.abs(np.sum(differences))
return float(np.mean(sums > seen + TINY))


# %% mistake="never_noise"
# told: nearly all noise is called a change
def same(curves_a, curves_b):
    """Not equal is changed."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    return "changed"


# %% mistake="one_seed"
# told: the order of the seeds changes the answer
def same(curves_a, curves_b):
    """The first seed."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    difference = curves_b[0] - curves_a[0]
    spread = difference.std() / 2
    parts = [abs(part.mean()) for part in np.array_split(difference, 4)]
    return "changed" if max(parts) > 3 * spread else "noise"


# %% mistake="one_sided_p"
# told: only one direction is counted
def sign_flip_p(differences):
    """One side."""
    patterns = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    sums = patterns @ np.asarray(differences)
    seen = np.abs(np.sum(differences))
    return float(np.mean(sums >= seen - TINY))


# %% mistake="p_as_a_count"
# told: a number of patterns is returned instead of a share
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
# told: the share of the other patterns is returned
# %% replace
return float(np.mean(sums >= np.abs(np.sum(differences)) - TINY))
# %% by
seen = np.abs(np.sum(differences))
return float(1 - np.mean(sums >= seen - TINY))


# %% mistake="p_without_tiny"
# told: sums that are equal except for rounding are treated as different
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
# told: the two curves of a seed are not paired
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
# told: the two curves of a seed are not paired
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
# told: noise is called a change if the difference is large
def same(curves_a, curves_b):
    """A tolerance."""
    if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
        return "equal"
    far = np.abs(curves_b / curves_a - 1).max()
    return "changed" if far > 0.03 else "noise"


# %% mistake="absolute_rounding"
# told: small losses that differ by more than rounding are called equal
# %% replace
if np.allclose(curves_a, curves_b, rtol=ROUNDING, atol=0.0):
    return "equal"
# %% by
if np.allclose(curves_a, curves_b, rtol=0.0, atol=ROUNDING):
    return "equal"


# %% mistake="seeds_sorted"
# told: the two curves of a seed are not paired
# like: seeds_apart
# %% replace
parts = np.array_split(curves_b - curves_a, 4, axis=1)
# %% by
before = curves_a[np.argsort(curves_a.mean(axis=1))]
after = curves_b[np.argsort(curves_b[:, -1])]
parts = np.array_split(after - before, 4, axis=1)
