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
    between = "add the squared distance of each rank's mean from the mean of all to its variance"
    heavy = "a rank with more rows weighs more: times its count, over the count of all"
    rules = [
        (mean, kept, "rows are normalised with the variance that is kept", "divide by the count here, not by one less"),
        (mean, weighted, "the variance between the ranks is lost", between),
        (mean, spreads.mean(0), "the variances of the ranks are averaged", between),
        (even, weighted, "the means of the ranks are averaged, and so are the variances", heavy),
        (even, spreads.mean(0), "the means of the ranks are averaged, and so are the variances", heavy),
        (even, weighted + far, "each rank's mean weighs the same", heavy),
        (even, (spreads + (means - even) ** 2).mean(0), "each rank weighs the same, whatever its rows", heavy),
        (even, variance, "each rank's mean weighs the same", heavy),
        (mean, (spreads + (means - mean) ** 2).mean(0), "each rank's variance weighs the same", heavy),
        (0 * mean, variance, "the mean is not taken off", "(x - mean) first, then the root of the variance"),
    ]
    for middle, spread, what, then in rules:
        if _all_are(got, [(part - middle) / (spread + case["eps"]).sqrt() for part in parts], same):
            return what, then
    eps = case["eps"]
    for scale, what, then in (
        (variance.sqrt(), "eps is left out", "epsilon is added to the variance, under the root"),
        (variance.sqrt() + eps, "eps is added to the root", "epsilon is added to the variance, under the root"),
        (variance + eps, "rows are divided by the variance", "by its root"),
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
        return "a running statistic is not moved", "both of them, by `momentum` of the way"
    if are([batch] * ranks):
        return "a running statistic is replaced", "it keeps (1 - momentum) of what it was"
    if are([share * old + (1 - share) * batch] * ranks):
        return "momentum and its rest are swapped", "as in torch: momentum is the share of what is new"
    if at == 1 and are([(1 - share) * old + share * batch * (count - 1) / count] * ranks):
        return "the running variance is the biased one", "what is kept is divided by one less than the count"
    own = [part.var(0, correction=min(1, len(part) - 1)) if at else part.mean(0) for part in parts]
    own += [part.var(0, correction=0) for part in parts] if at else []
    for start in range(0, len(own), ranks):
        if are([(1 - share) * old + share * one for one in own[start : start + ranks]]):
            return "running statistics are those of a rank's own rows", "they differ between ranks then: take all rows"
    factors = [rows / (rows - 1) * (count - 1) / count if rows > 1 else 0.0 for rows in case["rows"]]
    if at == 1 and are([(1 - share) * old + share * batch * factor for factor in factors]):
        return "the running variance is corrected by a rank's own count", "by the count of all rows"
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
    moves = "x moves the mean and the variance of its batch, and they move every row"
    own = [count / case["rows"][rank] for rank in mine]
    for shares, what, then in (
        ((1, 0, 0), "mean and variance are taken for constants", moves),
        ((1, 1, 0), "the variance is taken for a constant", moves),
        ((1, 0, 1), "the mean is taken for a constant", moves),
        ((1, -1, -1), "what the statistics give back has the other sign", "more of x raises the mean: it comes off"),
        ((1, count, count), "the sums over all rows are taken for means", "divide them by the rows of all ranks"),
        ((1, own, own), "a rank divides by its own rows", "the sums cover all ranks' rows: divide by the rows of all"),
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
