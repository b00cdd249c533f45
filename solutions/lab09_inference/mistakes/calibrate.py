# %% mistake="both_ends_together"
# told: another range has a smaller error
# %% replace
return grid(*min(pairs, key=lambda pair: error(*pair)), symmetric=symmetric)
# %% by
return grid(
    *min(
        [(part * ends[0] / 64, part * ends[-1] / 64) for part in range(6, 65)],
        key=lambda pair: error(*pair),
    ),
    symmetric=symmetric,
)


# %% mistake="changes_the_counts"
# told: Your function modified its input
# %% replace
counts, edges = torch.tensor(counts), torch.tensor(edges, dtype=torch.float64)
# %% by
seen = torch.tensor(counts)
for at in range(1, len(counts)):
    counts[at] += counts[at - 1]
counts, edges = seen, torch.tensor(edges, dtype=torch.float64)


# %% mistake="comes_round"
# told: your values beyond the grid wrap around
# %% replace
return steps.clamp(-127 if symmetric else -128, 127).to(torch.int8)
# %% by
return ((steps.long() + 128) % 256 - 128).to(torch.int8)


# %% mistake="counts_forgotten"
# told: each bin costs alike, whatever its count
# %% replace
return float((counts * cost).sum())
# %% by
return float((cost).sum())


# %% mistake="empty_bins_count"
# told: you let empty bins at the ends widen the range
# %% replace
ends = edges.tolist()
# %% by
ends = edges.tolist()
if method == "max":
    return grid(ends[0], ends[-1], symmetric=symmetric)


# %% mistake="integers_from_minus_128"
# told: an integer of a symmetric grid is -128
# %% replace
return steps.clamp(-127 if symmetric else -128, 127).to(torch.int8)
# %% by
return steps.clamp(-128, 127).to(torch.int8)


# %% mistake="least_is_all"
# told: the least error is that of everything kept
# %% replace
if method == "least":
    return grid(*min(pairs, key=lambda pair: error(*pair)), symmetric=symmetric)
# %% by


# %% mistake="least_is_the_percentile"
# told: the percentile's range was taken for the least error's
# %% replace
if method == "least":
    return grid(*min(pairs, key=lambda pair: error(*pair)), symmetric=symmetric)
if symmetric:
    most = 0.001 if method == "percentile" else 0.0
    kept = next(pair for pair in pairs if lost(*pair) <= most)
    return grid(*kept, symmetric=True)
most = 0.0005 if method == "percentile" else 0.0
# %% by
if symmetric:
    most = 0.001 if method != "max" else 0.0
    kept = next(pair for pair in pairs if lost(*pair) <= most)
    return grid(*kept, symmetric=True)
most = 0.0005 if method != "max" else 0.0


# %% mistake="lower_end_stays"
# told: the lower end of the least error's range was not searched
# %% replace
return grid(*min(pairs, key=lambda pair: error(*pair)), symmetric=symmetric)
# %% by
if not symmetric:
    low = min(end for end, count in zip(ends, counts, strict=False) if count)
    pairs = [pair for pair in pairs if pair[0] == low]
return grid(*min(pairs, key=lambda pair: error(*pair)), symmetric=symmetric)


# %% mistake="no_clamp"
# told: values beyond the grid are not brought to its ends
# %% replace
return steps.clamp(-127 if symmetric else -128, 127).to(torch.int8)
# %% by
return steps.long()


# %% mistake="outliers_set_the_range"
# told: single outliers still set the range
# %% replace
most = 0.001 if method == "percentile" else 0.0
# %% by
most = 0.0
# %% replace
most = 0.0005 if method == "percentile" else 0.0
# %% by
most = 0.0


# %% mistake="percentile_at_one_end"
# told: the percentile leaves out another share of the counts
# %% replace
most = 0.001 if method == "percentile" else 0.0
# %% by
most = 0.002 if method == "percentile" else 0.0
# %% replace
most = 0.0005 if method == "percentile" else 0.0
# %% by
most = 0.001 if method == "percentile" else 0.0


# %% mistake="range_without_zero"
# told: zero is not a number of the grid: the range does not reach it
# %% replace
low, high = min(low, 0.0), max(high, 0.0)
# %% by


# %% mistake="rounds_down"
# told: values are cut off or rounded late, and not to the nearest
# %% replace
steps = torch.round(values / scale) + zero
# %% by
steps = torch.floor(values / scale) + zero


# %% mistake="scale_not_squared"
# told: what is kept is priced by the scale, not by its square
# %% replace
cost = torch.where(beyond > 0, beyond**2, torch.tensor(scale**2 / 12))
# %% by
cost = torch.where(beyond > 0, beyond**2, torch.tensor(scale / 12))


# %% mistake="scales_along_the_first"
# told: scales and zero points are along another dimension
# %% replace
shape[axis] = -1
# %% by
shape[0 if values.shape[0] == len(scale) else axis] = -1


# %% mistake="share_of_the_bins"
# told: a share of the bins was left out, not of the counts
# %% replace
return float(counts[(centres < low) | (centres > high)].sum() / total)
# %% by
if method == "max":
    return float(counts[(centres < low) | (centres > high)].sum() / total)
cut = int(((centres < low) | (centres > high)).sum())
return 0.0 if cut <= max(1, round(0.0005 * len(centres))) else 1.0


# %% mistake="steps_256"
# told: the steps between n numbers are n - 1
# %% replace
return max(-low, high) / 127, 0
# %% by
return max(-low, high) * 2 / 256, 0
# %% replace
scale = (high - low) / 255
# %% by
scale = (high - low) / 256


# %% mistake="symmetric_each_end"
# told: each end of a symmetric percentile was taken separately
# %% replace
if symmetric:
    most = 0.001 if method == "percentile" else 0.0
    kept = next(pair for pair in pairs if lost(*pair) <= most)
    return grid(*kept, symmetric=True)
# %% by
if symmetric and method == "max":
    most = 0.0
    kept = next(pair for pair in pairs if lost(*pair) <= most)
    return grid(*kept, symmetric=True)
# %% replace
return grid(low, high, symmetric=False)
# %% by
return grid(low, high, symmetric=symmetric)


# %% mistake="symmetric_from_high"
# told: the lower end of a symmetric range counts as well
# %% replace
return max(-low, high) / 127, 0
# %% by
return (high or -low) / 127, 0


# %% mistake="symmetric_to_128"
# told: a symmetric grid has no -128
# %% replace
return max(-low, high) / 127, 0
# %% by
return max(-low, high) / 127.5, 0


# %% mistake="zero_point_cut_off"
# told: the zero point is cut off, and not rounded
# %% replace
return scale, round(-128 - low / scale)
# %% by
return scale, int(-128 - low / scale)


# %% mistake="zero_point_from_0"
# told: the zero point was counted from 0
# %% replace
return 1.0, 0 if symmetric else -128
# %% by
return 1.0, 0
# %% replace
return scale, round(-128 - low / scale)
# %% by
return scale, round(-low / scale)


# %% mistake="zero_point_not_whole"
# told: zero is not a number of the grid: its zero point is not whole
# %% replace
return scale, round(-128 - low / scale)
# %% by
return scale, -128 - low / scale


# %% mistake="zero_point_other_sign"
# told: the zero point has the wrong sign
# %% replace
return 1.0, 0 if symmetric else -128
# %% by
return 1.0, 0 if symmetric else 128
# %% replace
return scale, round(-128 - low / scale)
# %% by
return scale, round(128 + low / scale)
