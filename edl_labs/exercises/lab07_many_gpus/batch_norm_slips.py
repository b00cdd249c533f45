"""What sync_batch_norm's wrong outputs, running statistics and gradients are: other rules, worked out and compared."""

from __future__ import annotations

from typing import Any

from edl_labs.exercises.ranks_in_turn import distance, listed

Told = tuple[str, str]


def fresh(case: Any, before: Any, after: Any) -> tuple[Any, Any]:
    """The batch's mean and variance, as the solution's running statistics have them: the variance that is kept."""
    import torch

    share = case["momentum"]
    mean, variance = (
        (torch.tensor(new, dtype=torch.float64) - (1 - share) * old) / share
        for old, new in zip(before, after, strict=True)
    )
    return mean, variance


def of_outputs(case: Any, parts: Any, got: Any, right: tuple[Any, Any], same: float) -> Told | None:
    """Another mean, another variance or another eps that explains every rank's output."""
    import torch

    count = sum(case["rows"])
    mean, kept = right
    variance = kept * (count - 1) / count
    weights = torch.tensor(case["rows"], dtype=torch.float64).unsqueeze(1)
    own = [(part.mean(0), part.var(0, correction=0)) for part in parts]
    means, spreads = torch.stack([one for one, _ in own]), torch.stack([one for _, one in own])
    even = means.mean(0)
    weighted = (weights * spreads).sum(0) / count
    far = (weights * (means - even) ** 2).sum(0) / count
    between = "add to each rank's variance the squared distance of its mean from the overall mean"
    heavy = "weight each rank by its number of rows: multiply by its count, and divide by the total count"
    rules = [
        (
            mean,
            kept,
            "your function normalises rows with the unbiased variance",
            "to normalise, divide by the count, not by count - 1",
        ),
        (mean, weighted, "your variance leaves out the variance between the ranks' means", between),
        (mean, spreads.mean(0), "your variance is the average of the ranks' variances", between),
        (even, weighted, "your mean and variance are plain averages of the ranks' values", heavy),
        (even, spreads.mean(0), "your mean and variance are plain averages of the ranks' values", heavy),
        (even, weighted + far, "your function gives every rank's mean the same weight", heavy),
        (
            even,
            (spreads + (means - even) ** 2).mean(0),
            "your function gives every rank the same weight, regardless of its number of rows",
            heavy,
        ),
        (even, variance, "your function gives every rank's mean the same weight", heavy),
        (
            mean,
            (spreads + (means - mean) ** 2).mean(0),
            "your function gives every rank's variance the same weight",
            heavy,
        ),
        (
            0 * mean,
            variance,
            "your function does not subtract the mean",
            "subtract the mean before you divide by the root",
        ),
    ]
    for middle, spread, what, then in rules:
        if _all_are(got, [(part - middle) / (spread + case["eps"]).sqrt() for part in parts], same):
            return what, then
    eps = case["eps"]
    for scale, what, then in (
        (variance.sqrt(), "your function leaves out eps", "add eps to the variance, under the root"),
        (variance.sqrt() + eps, "your function adds eps outside the root", "add eps to the variance, under the root"),
        (variance + eps, "your function divides rows by the variance", "divide by the square root of the variance"),
    ):
        if _all_are(got, [(part - mean) / scale for part in parts], same):
            return what, then
    return None


def of_running(case: Any, parts: Any, before: Any, got: Any, right: Any, at: int, same: float) -> Told | None:
    """Another value that every rank's running mean (`at` 0) or variance (1) was moved to, or another way to move."""
    count, share = sum(case["rows"]), case["momentum"]
    batch, old = fresh(case, before, right)[at], before[at]
    found = [pair[at] for pair in got]

    def are(values: list[Any]) -> bool:
        return _all_are(found, values, same)

    ranks = len(parts)
    if are([old] * ranks):
        return (
            "your function does not update a running statistic",
            "move both statistics towards the batch's, by a share of `momentum`",
        )
    if are([batch] * ranks):
        return (
            "your function replaces a running statistic with the batch's value",
            "keep (1 - momentum) times the old value",
        )
    if are([share * old + (1 - share) * batch] * ranks):
        return (
            "your function swaps momentum and 1 - momentum",
            "use momentum as the weight of the new value, as in torch",
        )
    if at == 1 and are([(1 - share) * old + share * batch * (count - 1) / count] * ranks):
        return "your running variance uses the biased variance", "divide by count - 1 for the running variance"
    own = [part.var(0, correction=min(1, len(part) - 1)) if at else part.mean(0) for part in parts]
    own += [part.var(0, correction=0) for part in parts] if at else []
    for start in range(0, len(own), ranks):
        if are([(1 - share) * old + share * one for one in own[start : start + ranks]]):
            return (
                "your running statistics cover only a rank's own rows",
                "use all ranks' rows: the statistics must be the same on all ranks",
            )
    factors = [rows / (rows - 1) * (count - 1) / count if rows > 1 else 0.0 for rows in case["rows"]]
    if at == 1 and are([(1 - share) * old + share * batch * factor for factor in factors]):
        return "your function corrects the running variance with a rank's own count", "use the count of all rows"
    return None


def of_gradients(case: Any, upstream: Any, got: Any, want: Any) -> Told | None:
    """What each rank's gradient is made of: so much of what came, of 1 and of y; compared with the right shares."""
    mine = _shares(case, upstream, got, want["outputs"])
    right = _shares(case, upstream, want["gradients"], want["outputs"])
    if mine is None or right is None:
        return None
    ratios = [mine[rank] / right[rank] for rank in mine]

    def are(came: float, plain: Any, bent: Any) -> bool:
        """Whether each rank has so many times the right shares; a list has one number for each rank."""
        wanted = [[came, one, other] for one, other in zip(_each(plain, mine), _each(bent, mine), strict=True)]
        return all(_is_times(ratio, times) for ratio, times in zip(ratios, wanted, strict=True))

    count = sum(case["rows"])
    moves = "include the gradients through mean and variance: x changes both, and both change every row"
    own = [count / case["rows"][rank] for rank in mine]
    for shares, what, then in (
        ((1, 0, 0), "your backward pass treats the mean and the variance as constants", moves),
        ((1, 1, 0), "your backward pass treats the variance as a constant", moves),
        ((1, 0, 1), "your backward pass treats the mean as a constant", moves),
        (
            (1, -1, -1),
            "your gradients through mean and variance have the wrong sign",
            "subtract these terms: a larger x raises the mean, which is subtracted",
        ),
        (
            (1, count, count),
            "your backward pass uses sums over all rows as means",
            "divide these sums by the number of rows on all ranks",
        ),
        (
            (1, own, own),
            "in your backward pass, a rank divides by its own number of rows",
            "the sums cover all ranks: divide by the total number of rows",
        ),
    ):
        if are(*shares):
            return what, then
    return None


def _each(times: Any, ranks: Any) -> list[float]:
    return times if isinstance(times, list) else [times] * len(ranks)


def _is_times(ratio: Any, times: list[float]) -> bool:
    return all(
        bool(((row - one).abs() < 1e-6 * max(1.0, abs(one))).all()) for row, one in zip(ratio, times, strict=True)
    )


def _shares(case: Any, upstream: Any, gradients: Any, outputs: Any) -> dict[int, Any] | None:
    """For each rank with rows enough: the shares of what came, of 1 and of y in what goes back, by channel.

    None where they do not explain it.
    """
    import torch

    found = {}
    for rank, rows in enumerate(case["rows"]):
        if rows <= 3:
            continue
        back = torch.tensor(gradients[rank], dtype=torch.float64).reshape(rows, -1)
        y = torch.tensor(outputs[rank], dtype=torch.float64).reshape(rows, -1)
        base = torch.stack([upstream[rank], torch.ones_like(y), y], 2).transpose(0, 1)
        solved = torch.linalg.lstsq(base, back.T.unsqueeze(2)).solution
        if distance(listed(base @ solved), listed(back.T)) > 1e-6:
            return None
        found[rank] = solved.squeeze(2).T
    return found


def _all_are(got: list[Any], made: list[Any], same: float) -> bool:
    return all(distance(mine, listed(one)) <= same for mine, one in zip(got, made, strict=True))
