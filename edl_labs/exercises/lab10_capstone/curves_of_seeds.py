"""same_curve: whether a fix changed the training, from loss curves of several seeds; judged by how often one errs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import counted

LABELS = ("equal", "noise", "changed")
MOST_WRONG = 2  # false alarms, and misses, of the pairs of each; one in ten, rounded down
_TIES = (1, 2, 4, 8)  # patterns as far from zero as the seen one: itself, its mirror image, differences of one size
_TURNS = (1, 4, 7)  # seeds by which the first is moved: three others come first, so that luck seldom hides one seed
_MANY = 0.8  # of a shape's pairs: nearly all are missed
_MOST = 0.6  # of pairs: more than luck, for a test that sees some of them
_ENLARGED = 6.0  # times a pair's differences: noise then is below what seeds lie apart, and a change above
_ORDERED = 0.9  # of comparisons of two pairs: a distance orders nearly all, a test of signs half


@exercise("same_curve")
class SameCurve(Exercise):
    """Whether two sets of loss curves are equal, differ by noise, or were changed; and a sign-flip test's p.

    `sign_flip_p(differences)` is exact; `same(curves_a, curves_b)` is judged by false alarms and misses.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        import numpy

        pairs = given["pairs"]

        def same(a: Any, b: Any) -> Any:
            return student.same(a.copy(), b.copy())

        return {
            "p": [student.sign_flip_p(numpy.array(one)) for one in given["differences"]],
            "labels": [same(one["a"], one["b"]) for one in pairs],
            "other_first": [
                [same(numpy.roll(one["a"], turn, 0), numpy.roll(one["b"], turn, 0)) for turn in _TURNS] for one in pairs
            ],
            "exchanged": [same(one["b"], one["a"]) for one in pairs],
            "mixed": [same(one["a"], numpy.roll(one["b"], 1, 0)) for one in pairs],
            "enlarged": [same(one["a"], one["a"] + _ENLARGED * (one["b"] - one["a"])) for one in pairs],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        shares = list(zip(case["differences"], got["p"], want["p"], strict=True))
        for differences, said, right in shares:
            if not close(said, right):
                raise _p_symptom(shares[:-1], differences, said, right, tied=differences == case["differences"][-1])
        for said in got["labels"]:
            if said not in LABELS:
                then = f"return one of {', '.join(LABELS)}"
                raise Wrong("same() did not return one of the three answers", why=f"got {said[:40]!r}", next=then)
        counts = _Counts(case, got)
        if counts.equal_missed or counts.equal_claimed:
            raise _equal_symptom(case, got, counts)
        if max(counts.false_alarms, counts.misses) > MOST_WRONG:
            _require_all_seeds(case, got)
        if counts.false_alarms > MOST_WRONG:
            raise _alarm_symptom(case, got, counts)
        if counts.misses > MOST_WRONG:
            raise _miss_symptom(case, got, counts)

    def format_answer(self, case: Any, got: Any) -> str:
        """How often the answers err."""
        counts = _Counts(case, got)
        return (
            f"{counts.false_alarms} of {counts.noise} pairs of noise called changed, {counts.misses} of "
            f"{counts.changed} changed pairs missed, {counts.equal_missed} of {counts.equal} equal pairs missed"
        )

    def format_case(self, case: Any) -> str:
        """How many pairs there are."""
        seeds, points = case["pairs"][0]["a"].shape
        return (
            f"{len(case['pairs'])} pairs of curves, {seeds} seeds and {points} points each; "
            f"p of {'; '.join(str(one) for one in case['differences'])}"
        )


class _Counts:
    """How often answers err, by what the pairs really are."""

    def __init__(self, case: Any, got: Any) -> None:
        rows = list(zip(case["labels"], case["shapes"], got["labels"], strict=True))

        def count(wanted: Callable[[str, str], bool]) -> int:
            return sum(wanted(label, said) for label, _, said in rows)

        self.noise, self.changed, self.equal = (case["labels"].count(one) for one in ("noise", "changed", "equal"))
        self.false_alarms = count(lambda label, said: label == "noise" and said == "changed")
        self.misses = count(lambda label, said: label == "changed" and said != "changed")
        self.equal_missed = count(lambda label, said: label == "equal" and said != "equal")
        self.equal_claimed = count(lambda label, said: label != "equal" and said == "equal")
        shapes = {shape for label, shape, _ in rows if label == "changed"}
        self.missed = {one: [said != "changed" for _, shape, said in rows if shape == one] for one in shapes}

    def misses_of(self, *shapes: str) -> float:
        """The share of missed pairs among those of some shapes."""
        of_these = [one for shape in shapes for one in self.missed[shape]]
        return sum(of_these) / len(of_these)


def _p_symptom(shares: list[Any], differences: list[float], said: Any, right: float, *, tied: bool) -> Wrong:
    """What p is instead; a cause only where it gives every p of `shares`, in which no two sums are equal."""
    count = 2 ** len(differences)

    def fits(*rules: Callable[[float, int], float]) -> bool:
        return all(any(close(p, rule(due, 2 ** len(of))) for rule in rules) for of, p, due in shares)

    why = f"for {differences}: got {said if type(said) not in (int, float) else round(said, 6)}, expected {right:.6g}"
    if tied and type(said) in (int, float) and said < right:
        then = "here, two sums are equal except in the last of about 15 digits: what is TINY for?"
        return Wrong("your function treats sums that are equal except for rounding as different", why=why, next=then)
    if fits(lambda due, count: due / 2):
        why = f"{why}; all your other results are also half of what is expected"
        then = (
            "give each difference the sign 1 or -1, and compare the absolute values of the sums: both directions count"
        )
        raise Wrong(
            "your function counts only one direction, or its patterns leave differences out", why=why, next=then
        )
    if fits(*(lambda due, count, ties=ties: due - ties / count for ties in _TIES)):
        then = "count all patterns that are at least as extreme, including the observed pattern and its mirror image"
        raise Wrong("your function does not count the observed pattern", why=why, next=then)
    if fits(lambda due, count: 1 - due, lambda due, count: 1 - due + 2 / count):
        then = "return the share of patterns whose sum is at least as far from zero as the observed sum"
        raise Wrong("your function returns the share of the other patterns", why=why, next=then)
    if fits(lambda due, count: due * count):
        then = "divide by the number of all patterns"
        raise Wrong("your function returns a number of patterns instead of a share", why=why, next=then)
    if type(said) in (int, float) and 0 <= said <= 1 and not close(count * said, round(count * said)):
        then = "use each pattern exactly once, with itertools.product: random signs give p only approximately"
        return Wrong("your p is not a share of all 2^n patterns", why=why, next=then)
    then = "for what share of the 2^n sign patterns is the sum at least as far from zero as the observed sum?"
    return Wrong("your p is the wrong share of sign patterns", why=why, next=then)


def _equal_symptom(case: Any, got: Any, counts: _Counts) -> Wrong:
    if counts.equal_missed:
        why = f"{counts.equal_missed} of {counts.equal} pairs that differ only by rounding are not called equal"
        then = "call curves equal if they are within ROUNDING of each other at all points of all seeds"
        return Wrong(
            'your function does not return "equal" for curves that differ only by rounding', why=why, next=then
        )
    why = f"you call {counted(counts.equal_claimed, 'pair')} of curves equal that differ by more than rounding"
    rows = zip(case["labels"], case["shapes"], got["labels"], strict=True)
    claimed = {shape for label, shape, said in rows if label != "equal" and said == "equal"}
    if claimed == {"one point"}:
        why = f"of {counted(counts.equal_claimed, 'pair')} that you call equal, one point of one seed differs by more "
        why += "than rounding"
        then = "compare all points of all seeds: a single point that differs is enough"
        raise Wrong("your function ignores a difference at a single point", why=why, next=then)
    if claimed == {"near, small"}:
        then = "multiply ROUNDING by the loss: ROUNDING is relative"
        raise Wrong(
            'your function returns "equal" for small losses that differ by more than rounding', why=why, next=then
        )
    if claimed and claimed <= {"near", "near, small"}:
        then = "use only ROUNDING, relative to the loss: numpy.allclose has its own defaults for rtol and atol"
        raise Wrong("your function uses a tolerance other than ROUNDING", why=why, next=then)
    then = "compare all points of all seeds with ROUNDING, relative to the loss: a fix that changes nothing changes "
    then += "only the last digits"
    return Wrong('your function returns "equal" for noise', why=why, next=then)


def _require_all_seeds(case: Any, got: Any) -> None:
    """Wrong where the same seeds in another order have other answers."""
    turned = sum(set(got["other_first"][at]) != {got["labels"][at]} for at in case["again"])
    if turned > MOST_WRONG:
        why = f"with the same seeds in a different order, {turned} of {len(case['again'])} answers differ"
        then = "treat all seeds in the same way"
        raise Wrong("the order of the seeds changes your answer", why=why, next=then)


def _follow_the_size(case: Any, got: Any, *, of: str) -> bool:
    """Whether pairs of a label are called changed where they differ much, and hardly elsewhere."""
    sizes: dict[bool, list[float]] = {True: [], False: []}
    for pair, label, said in zip(case["pairs"], case["labels"], got["labels"], strict=True):
        if label == of:
            sizes[said == "changed"].append(float(abs(pair["b"] / pair["a"] - 1).max()))
    pairs = [large > small for large in sizes[True] for small in sizes[False]]
    return bool(pairs) and sum(pairs) >= _ORDERED * len(pairs)


def _alarm_symptom(case: Any, got: Any, counts: _Counts) -> Wrong:
    why = (
        f"{counts.false_alarms} of {counts.noise} pairs with only noise are called changed; at most {MOST_WRONG} may be"
    )
    if counts.false_alarms >= _MANY * counts.noise:
        then = "two runs never agree at every point: does the difference have the same sign for all seeds?"
        return Wrong('your function returns "changed" for nearly all noise', why=why, next=then)
    if _follow_the_size(case, got, of="noise"):
        then = "how far apart are the curves of different seeds here? No fixed distance fits all pairs"
        return Wrong('your function returns "changed" for noise if the difference is large', why=why, next=then)
    if counts.misses > MOST_WRONG:
        why += f"; also, {counts.misses} of {counts.changed} changed pairs are missed"
    then = "how many tests do you make per pair, and with which limit for p? All tests of a pair together may have the "
    then += "false-alarm rate ALPHA, and each test needs one number per seed"
    return Wrong("your function gives too many false alarms", why=why, next=then)


def _is_unpaired(case: Any, got: Any) -> bool:
    """Whether a change is seen only where it is larger than seeds lie apart, whoever is compared with whom."""
    kinds: dict[str, list[bool]] = {"changed": [], "noise": []}
    for at in case["again"]:
        kinds[case["labels"][at]].append(got["enlarged"][at] == "changed")
    sees = {kind: sum(found) / len(found) for kind, found in kinds.items()}
    mixed = sum(got["labels"][at] != got["mixed"][at] for at in case["again"])
    seen = sum(got["labels"][at] == "changed" for at in case["again"]) <= (1 - _MOST) * len(kinds["changed"])
    return seen and mixed <= MOST_WRONG and sees["changed"] >= _MOST and sees["noise"] <= 1 - _MOST


def _miss_symptom(case: Any, got: Any, counts: _Counts) -> Wrong:
    why = f"{counts.misses} of {counts.changed} changed pairs are missed; at most {MOST_WRONG} may be"
    if sum(got["labels"][at] != got["exchanged"][at] for at in case["again"]) > MOST_WRONG:
        why += "; your answers change if the two curves are exchanged"
        then = "treat a lower loss as a change, too"
        return Wrong("your function misses changes for the better", why=why, next=then)
    if _is_unpaired(case, got):
        then = "subtract the curves seed by seed: the two curves of one seed belong together"
        return Wrong("your function does not pair the two curves of a seed", why=why, next=then)
    if counts.misses == counts.changed and not counts.false_alarms:
        then = "how many numbers do you pass to the test? With n numbers, p is never below 2 / 2^n"
        return Wrong('your function never returns "changed"', why=why, next=then)
    if _follow_the_size(case, got, of="changed"):
        then = (
            "how far apart are the two curves of one seed here? If noise is small, even a small difference is a change"
        )
        return Wrong("your function misses changes if the difference is small", why=why, next=then)
    if counts.misses >= _MANY * counts.changed:
        then = "what do the differences seed by seed show? Seeds are far apart, but the two curves of a seed are close"
        return Wrong("your function misses most changes", why=why, next=then)
    if counts.misses_of("early") >= _MANY and counts.misses_of("late") <= 1 - _MOST:
        why += (
            f"; {counts.misses_of('early'):.0%} of the early changes are missed, but only "
            f"{counts.misses_of('late'):.0%} of the late changes"
        )
        then = "test every part of the curves: a change that has disappeared by the end is also a change"
        return Wrong("your function misses changes at the beginning of the curves", why=why, next=then)
    if counts.misses_of("late") >= _MANY and counts.misses_of("early") <= 1 - _MOST:
        why += (
            f"; {counts.misses_of('late'):.0%} of the late changes are missed, but only "
            f"{counts.misses_of('early'):.0%} of the early changes"
        )
        then = "test every part of the curves, each with one number per seed"
        return Wrong("your function misses changes at the end of the curves", why=why, next=then)
    if counts.misses_of("crosses") >= _MANY and counts.misses_of("early", "late", "all along") <= 1 - _MOST:
        then = "test parts of the curves: a loss that is lower first and higher later can have the same mean"
        return Wrong("in your function, ups and downs cancel in a single mean", why=why, next=then)
    then = "give the test one number per seed: a mean over several points has less noise than a single point"
    return Wrong("your function misses too many changes", why=why, next=then)
