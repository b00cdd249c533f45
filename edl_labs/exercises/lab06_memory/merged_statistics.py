"""merge_statistics: the mean and variance of a whole batch from those of its parts, as batch norm needs them."""

from __future__ import annotations

import math
import struct
from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.checks.evidence_form import answer_text
from edl_labs.errors import Wrong

_MEAN = 1e-5  # of a standard deviation: means differ by much more, and 1e4 in float64 is known to 1e-10 of one
_VARIANCE = 1e-6  # relative; a difference of squares of 1e4 is off by a thousand times as much


@exercise("merge_statistics", digits=13)
class MergeStatistics(Exercise):
    """Mean and variance of a batch from counts, means and variances of its parts, and batch norm's running ones.

    `merge_statistics(parts)` gives (mean, biased variance), `running_statistics(running, parts, momentum=)` the pair
    that batch norm keeps after this one batch.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        def parts() -> list[Any]:
            return [dict(part) for part in given["parts"]]

        merged = student.merge_statistics(parts())
        running = student.running_statistics(tuple(given["running"]), parts(), momentum=given["momentum"])
        return {"merged": merged, "running": running}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got["merged"]) != 2 or len(got["running"]) != 2:
            why = f"got {len(got['merged'])} and {len(got['running'])} values"
            raise Wrong("each function must return two numbers", why=why, next="return the mean, then the variance")
        mean, variance = got["merged"]
        if not _near(mean, want["merged"][0], _MEAN * math.sqrt(want["merged"][1])):
            raise _mean_symptom(case, mean)
        if not _near(variance, want["merged"][1], _VARIANCE * want["merged"][1]):
            raise _variance_symptom(case, variance, want["merged"])
        scale = math.sqrt(want["merged"][1])
        if not _near(got["running"][0], want["running"][0], _MEAN * scale):
            raise _running_symptom(case, 0, got["running"][0], want)
        if not _near(got["running"][1], want["running"][1], _VARIANCE * want["running"][1]):
            raise _running_symptom(case, 1, got["running"][1], want)

    def format_case(self, case: Any) -> str:
        """The parts, one a line."""
        lines = [f"  {p['count']} values, mean {p['mean']!r}, variance {p['variance']!r}" for p in case["parts"]]
        head = f"momentum {case['momentum']}, previous running mean and variance: {tuple(case['running'])}"
        return "\n".join([head, *lines])


def _mean_symptom(case: Any, said: Any) -> Wrong:
    means = [part["mean"] for part in case["parts"]]
    if _near(said, sum(means) / len(means), 1e-9 * abs(said)):
        why = f"the parts have {', '.join(str(part['count']) for part in case['parts'])} values"
        return Wrong(
            "in your mean, parts of different sizes have the same weight", why=why, next="weight them by their counts"
        )
    right = sum(part["count"] * part["mean"] for part in case["parts"]) / sum(part["count"] for part in case["parts"])
    if said == _in_fp32(said) and _near(said, right, 1e-6 * abs(right)):
        why = f"{said!r} is exactly an fp32 number, and fp32 numbers of this size are {_fp32_step(said):.2g} apart"
        then = "use plain Python numbers, which are fp64, or tensors with dtype=torch.float64"
        return Wrong("your mean is an fp32 number, which has too few digits for these values", why=why, next=then)
    return Wrong("your mean is wrong", why=f"got {said!r}", next="divide the sum of all values by their number")


def _variance_symptom(case: Any, said: Any, merged: list[float]) -> Wrong:
    parts = case["parts"]
    values = sum(part["count"] for part in parts)
    within = sum(part["count"] * part["variance"] for part in parts) / values
    plain = sum(part["variance"] for part in parts) / len(parts)
    apart = "the mean is right, but your variance ignores that the means of the parts differ"
    if any(_near(said, one, _VARIANCE * one) for one in (within, plain)):
        then = "how far is a part's mean from that of the whole batch, and how many values does this concern?"
        return Wrong("the variance between the parts is missing from your variance", why=apart, next=then)
    if _near(said, merged[1] * values / (values - 1), _VARIANCE * merged[1]):
        why = "the mean is right, but your variance is divided by the count minus 1"
        then = "divide by the count, as batch norm does when it normalises"
        return Wrong("your variance of the batch is unbiased, but it should be biased", why=why, next=then)
    for known, what, why, then in _OTHER_VARIANCES:
        if _near(said, known(parts, merged), _VARIANCE * merged[1]):
            return Wrong(what, why=why, next=then)
    if abs(merged[0]) > 1e3 * math.sqrt(merged[1]) and _near(said, merged[1], 0.5 * merged[1] + 1e-15 * merged[0] ** 2):
        why = (
            f"for values near {merged[0]:g} with a deviation of {math.sqrt(merged[1]):g}, squares agree in most digits"
        )
        then = "add up squared distances from the mean instead of squares"
        return Wrong("in your variance, most digits cancel", why=why, next=then)
    then = "which squared distances have to be added up?"
    return Wrong("your variance is wrong", why=f"the mean is right, but the variance is {said!r}", next=then)


def _running_symptom(case: Any, place: int, said: Any, want: Any) -> Wrong:
    name, old, momentum = ("mean", "variance")[place], case["running"][place], case["momentum"]
    new = want["merged"][place]
    why = f"the merged statistics are right, but the running {name} is {answer_text(said)}"
    small = _VARIANCE * math.sqrt(want["merged"][1]) if place == 0 else _VARIANCE * abs(want["running"][1])
    if _near(said, momentum * old + (1 - momentum) * want["running"][place], small) or _near(
        said, momentum * old + (1 - momentum) * new, small
    ):
        then = "give the new value the weight `momentum`, as torch does"
        return Wrong("in your update, the weights of the old and the new value are swapped", why=why, next=then)
    values = sum(part["count"] for part in case["parts"])
    if _near(said, new, small) or (place == 1 and _near(said, new * values / max(1, values - 1), small)):
        why = f"{why}, which is the {name} of the new batch alone"
        then = "add (1 - momentum) times the old value and momentum times the new one"
        return Wrong(f"your running {name} does not use the old value", why=why, next=then)
    stepped = old
    for part in case["parts"]:
        stepped = (1 - momentum) * stepped + momentum * part[name]
    if place == 0 and _near(said, stepped, small):
        why = f"{why}: {len(case['parts'])} updates leave {(1 - momentum) ** len(case['parts']):.3f} of the old value"
        then = "update the running statistics once for the whole batch"
        return Wrong("your code updates the running statistics once per part", why=why, next=then)
    if place == 1 and _near(said, (1 - momentum) * old + momentum * new, small):
        then = "divide by count - 1 here: batch norm normalises with the biased variance but keeps the unbiased one"
        return Wrong("your running variance is biased, but it should be unbiased", why=why, next=then)
    if place == 1:
        for known, what, then in _OTHER_CORRECTIONS:
            if _near(said, (1 - momentum) * old + momentum * known(case["parts"], new), small):
                return Wrong(what, why=why, next=then)
    then = "add (1 - momentum) times the old value and momentum times the new one"
    return Wrong(f"your running {name} is wrong", why=why, next=then)


def _deviation(parts: list[Any], merged: list[float]) -> float:
    return math.sqrt(merged[1])


def _means_unweighed(parts: list[Any], merged: list[float]) -> float:
    inside = sum(part["count"] * part["variance"] for part in parts) / sum(part["count"] for part in parts)
    return float(inside + sum((part["mean"] - merged[0]) ** 2 for part in parts) / len(parts))


def _to_the_new_mean(parts: list[Any], merged: list[float]) -> float:
    """Part by part, each distance taken to a mean that the part is already in."""
    count, mean, squares = 0, 0.0, 0.0
    for part in parts:
        before, count = count, count + part["count"]
        mean += (part["mean"] - mean) * part["count"] / count
        squares += part["count"] * (part["variance"] + (part["mean"] - mean) ** 2 * before / count)
    return squares / count


def _corrected_by_part(parts: list[Any], merged_variance: float) -> float:
    values = sum(part["count"] for part in parts)
    more = [part["count"] * part["variance"] / max(1, part["count"] - 1) for part in parts]
    return float(merged_variance + sum(more) / values)


def _corrected_by_parts(parts: list[Any], merged_variance: float) -> float:
    return merged_variance * len(parts) / max(1, len(parts) - 1)


_OTHER_VARIANCES = (
    (
        _deviation,
        "your function returned the standard deviation",
        "the mean is right, but you returned the square root of the variance instead of the variance",
        "return the variance itself",
    ),
    (
        _means_unweighed,
        "your code gives the squared distances of the parts' means equal weights",
        "the mean is right, but a part with many values must count more than one with few",
        "weight each squared distance by the part's count",
    ),
    (
        _to_the_new_mean,
        "your code measures a part's distance to a mean that already includes the part",
        "the mean is right; if you merge parts one by one, you need the distance to the mean of the earlier parts",
        "compute the distance before you update the mean",
    ),
)
_OTHER_CORRECTIONS = (
    (
        _corrected_by_part,
        "your code corrects the variance of each part separately",
        "apply one correction, with the count of the whole batch: the parts are one batch",
    ),
    (
        _corrected_by_parts,
        "your correction uses the number of parts, not the number of values",
        "subtract 1 from the number of values in the whole batch",
    ),
)


def _in_fp32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _fp32_step(value: float) -> float:
    return math.ldexp(1.0, math.frexp(value)[1] - 24)


def _near(said: Any, right: float, within: float) -> bool:
    return type(said) in (int, float) and math.isfinite(said) and abs(said - right) <= within
