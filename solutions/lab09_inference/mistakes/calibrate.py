# %% mistake="both_ends_together"
# told: your range does not have the smallest error
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
# told: in your code, values beyond the grid wrap around
# %% replace
return steps.clamp(-127 if symmetric else -128, 127).to(torch.int8)
# %% by
return ((steps.long() + 128) % 256 - 128).to(torch.int8)


# %% mistake="counts_forgotten"
# told: in your error, every bin costs the same, whatever its count
# %% replace
return float((counts * cost).sum())
# %% by
return float((cost).sum())


# %% mistake="empty_bins_count"
# told: in your answer, empty bins at the ends widen the range
# %% replace
ends = edges.tolist()
# %% by
ends = edges.tolist()
if method == "max":
    return grid(ends[0], ends[-1], symmetric=symmetric)


# %% mistake="integers_from_minus_128"
# told: your code uses -128 on a symmetric grid
# %% replace
return steps.clamp(-127 if symmetric else -128, 127).to(torch.int8)
# %% by
return steps.clamp(-128, 127).to(torch.int8)


# %% mistake="least_is_all"
# told: your range for the least error keeps every value
# %% replace
if method == "least":
    return grid(*min(pairs, key=lambda pair: error(*pair)), symmetric=symmetric)
# %% by


# %% mistake="least_is_the_percentile"
# told: your range for the least error is the range of the percentile
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
# told: for the least error, your code does not vary the lower end of the range
# %% replace
return grid(*min(pairs, key=lambda pair: error(*pair)), symmetric=symmetric)
# %% by
if not symmetric:
    low = min(end for end, count in zip(ends, counts, strict=False) if count)
    pairs = [pair for pair in pairs if pair[0] == low]
return grid(*min(pairs, key=lambda pair: error(*pair)), symmetric=symmetric)


# %% mistake="no_clamp"
# told: your code does not set values beyond the grid to its ends
# %% replace
return steps.clamp(-127 if symmetric else -128, 127).to(torch.int8)
# %% by
return steps.long()


# %% mistake="outliers_set_the_range"
# told: in your answer, single outliers still determine the range
# %% replace
most = 0.001 if method == "percentile" else 0.0
# %% by
most = 0.0
# %% replace
most = 0.0005 if method == "percentile" else 0.0
# %% by
most = 0.0


# %% mistake="percentile_at_one_end"
# told: your percentile leaves out the wrong share of the counts
# %% replace
most = 0.001 if method == "percentile" else 0.0
# %% by
most = 0.002 if method == "percentile" else 0.0
# %% replace
most = 0.0005 if method == "percentile" else 0.0
# %% by
most = 0.001 if method == "percentile" else 0.0


# %% mistake="range_without_zero"
# told: your grid does not contain 0, because its range does not
# %% replace
low, high = min(low, 0.0), max(high, 0.0)
# %% by


# %% mistake="rounds_down"
# told: your code does not round values to the nearest step
# %% replace
steps = torch.round(values / scale) + zero
# %% by
steps = torch.floor(values / scale) + zero


# %% mistake="scale_not_squared"
# told: in your error, values on the grid cost the scale instead of its square
# %% replace
cost = torch.where(beyond > 0, beyond**2, torch.tensor(scale**2 / 12))
# %% by
cost = torch.where(beyond > 0, beyond**2, torch.tensor(scale / 12))


# %% mistake="scales_along_the_first"
# told: your code applies scales and zero points along the wrong dimension
# %% replace
shape[axis] = -1
# %% by
shape[0 if values.shape[0] == len(scale) else axis] = -1


# %% mistake="share_of_the_bins"
# told: your code leaves out a share of the bins, not of the counts
# %% replace
return float(counts[(centres < low) | (centres > high)].sum() / total)
# %% by
if method == "max":
    return float(counts[(centres < low) | (centres > high)].sum() / total)
cut = int(((centres < low) | (centres > high)).sum())
return 0.0 if cut <= max(1, round(0.0005 * len(centres))) else 1.0


# %% mistake="steps_256"
# told: your function counts the numbers of the grid instead of its steps
# %% replace
return max(-low, high) / 127, 0
# %% by
return max(-low, high) * 2 / 256, 0
# %% replace
scale = (high - low) / 255
# %% by
scale = (high - low) / 256


# %% mistake="symmetric_each_end"
# told: your symmetric percentile leaves out too few counts
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
# told: your function ignores the lower end of a symmetric range
# %% replace
return max(-low, high) / 127, 0
# %% by
return (high or -low) / 127, 0


# %% mistake="symmetric_to_128"
# told: your symmetric grid includes -128
# %% replace
return max(-low, high) / 127, 0
# %% by
return max(-low, high) / 127.5, 0


# %% mistake="zero_point_cut_off"
# told: your function does not round the zero point to the nearest integer
# %% replace
return scale, round(-128 - low / scale)
# %% by
return scale, int(-128 - low / scale)


# %% mistake="zero_point_from_0"
# told: your function counts the zero point from 0
# %% replace
return 1.0, 0 if symmetric else -128
# %% by
return 1.0, 0
# %% replace
return scale, round(-128 - low / scale)
# %% by
return scale, round(-low / scale)


# %% mistake="zero_point_not_whole"
# told: your zero point is not an integer, so the grid does not contain 0
# %% replace
return scale, round(-128 - low / scale)
# %% by
return scale, -128 - low / scale


# %% mistake="zero_point_other_sign"
# told: your zero point has the wrong sign
# %% replace
return 1.0, 0 if symmetric else -128
# %% by
return 1.0, 0 if symmetric else 128
# %% replace
return scale, round(-128 - low / scale)
# %% by
return scale, round(128 + low / scale)
