"""fit_a_link: alpha and rate of a link from a noisy table of messages, and the rate that nccl-tests would print."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_count, byte_rate, seconds, si

_ALPHA_WITHIN, _RATE_WITHIN = 0.10, 0.05  # several times what 2 % of noise does to a fit, promised in the text


@exercise("fit_a_link")
class FitALink(Exercise):
    """What a message costs before its first byte, and the rate, from sizes and times; a bus bandwidth.

    `fit(sizes, took_s)` gives (alpha_s, byte_per_s, half_bytes), `bus_rate(ranks, size, took_s)` bytes per second.
    """

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"fit": tuple[Any, Any, Any]}

    def probe(self, student: Any, given: Any) -> Any:
        alpha_s, rate, half = student.fit([*given["sizes"]], [*given["took_s"]])
        bus = student.bus_rate(given["ranks"], given["sizes"][-1], given["took_s"][-1])
        return {"alpha_s": alpha_s, "byte_per_s": rate, "half_bytes": half, "bus_byte_per_s": bus}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        rate, right = got["byte_per_s"], want["byte_per_s"]
        if close(rate, 8 * right, rtol=_RATE_WITHIN):
            raise Wrong(
                "your rate is in bits per second", why=f"your rate is {rate:.4g}", next="return bytes per second"
            )
        if close(rate, want["alpha_s"], rtol=_ALPHA_WITHIN) and close(got["alpha_s"], right, rtol=_RATE_WITHIN):
            why = f"your function returned ({got['alpha_s']:.4g}, {rate:.4g}, ...)"
            raise Wrong(
                "your function returns alpha and the rate in the wrong order",
                why=why,
                next="return alpha_s, byte_per_s, half_bytes",
            )
        if not close(rate, right, rtol=_RATE_WITHIN):
            raise _rate_symptom(case, rate, right)
        alpha_s = got["alpha_s"]
        if not close(alpha_s, want["alpha_s"], rtol=_ALPHA_WITHIN):
            raise _alpha_symptom(case, alpha_s)
        if not close(got["half_bytes"], alpha_s * rate, rtol=1e-3):
            raise _half_symptom(case, got["half_bytes"], alpha_s, rate)
        _judge_bus(case, got["bus_byte_per_s"], want["bus_byte_per_s"])

    def format_case(self, case: Any) -> str:
        """The table, in short."""
        rows = [
            f"{byte_count(size)} in {seconds(took)}" for size, took in zip(case["sizes"], case["took_s"], strict=True)
        ]
        return f"{case['ranks']} ranks; {', '.join(rows)}"


def _rate_symptom(case: Any, rate: float, right: float) -> Wrong:
    why = f"your rate is {byte_rate(rate, digits=4)}"
    sizes, took_s = case["sizes"], case["took_s"]
    slope = _slope([math.log(size) for size in sizes], [math.log(took) for took in took_s])
    if any(close(rate, one) for one in (slope, 1 / slope, math.exp(slope))):
        why = f"your rate, {rate:.4g}, follows from the slope of log(time) over log(size), which has no unit"
        then = "fit a line to the times themselves: alpha + n / rate is a line in n, not in log n"
        return Wrong("you fit a line to logarithms instead of times", why=why, next=then)
    if rate and close(1 / rate, right, rtol=_RATE_WITHIN):
        why = f"your rate is {rate:.4g}"
        then = "return its inverse: the rate is one over the slope of time over size"
        return Wrong("your rate is in seconds per byte", why=why, next=then)
    if close(rate, sum(size / took for size, took in zip(sizes, took_s, strict=True)) / len(sizes)):
        then = "use the slope of time over size of the large messages: a small message's time is nearly all alpha"
        return Wrong("your rate is the mean of all messages' rates", why=why, next=then)
    if close(rate, case["sizes"][-1] / case["took_s"][-1]):
        then = "the largest message's time still contains alpha: by how much do the times of two large messages differ?"
        return Wrong("your rate is the largest message's size over its time", why=why, next=then)
    then = "look at the large messages: the more bytes a message has, the more its time depends on the rate"
    for (small, before_s), (large, after_s) in pairwise(zip(sizes, took_s, strict=True)):
        if close(rate * (after_s - before_s), large - small):
            why += f", exactly what the times of {byte_count(small)} and {byte_count(large)} give; both contain noise"
            return Wrong("your rate comes from only two messages", why=why, next=then)
    return Wrong("your rate is wrong", why=why, next=then)


def _alpha_symptom(case: Any, alpha_s: float) -> Wrong:
    if alpha_s == 0:
        then = "does an empty message really take no time, as with a line through the origin?"
        return Wrong("your alpha is zero", why="your function returned an alpha of 0 s", next=then)
    why = f"your alpha is {si(alpha_s, 's', digits=4)}; the smallest message takes {seconds(case['took_s'][0])}"
    if close(alpha_s, 1e6 * case["took_s"][0], rtol=_ALPHA_WITHIN):
        return Wrong("your alpha is in microseconds", why=why, next="return seconds")
    if close(alpha_s, sum(case["took_s"]) / len(case["took_s"])):
        then = "a large message's time is nearly all for its bytes: how long does a message with hardly any bytes take?"
        return Wrong("your alpha is the mean of all times", why=why, next=then)
    if close(alpha_s, _plain_alpha_s(case["sizes"], case["took_s"]), rtol=1e-3):
        then = "the noise is a percentage of each time: which messages dominate a plain least-squares fit?"
        return Wrong("small messages hardly influence your fit", why=why, next=then)
    then = "alpha is the part of the time that does not depend on the bytes: how long do the smallest messages take?"
    return Wrong("your alpha is wrong", why=why, next=then)


def _plain_alpha_s(sizes: list[float], took_s: list[float]) -> float:
    """Where the least-squares line through all messages meets size zero, none weighing more than another."""
    slope = _slope(sizes, took_s)
    return sum(took_s) / len(took_s) - slope * sum(sizes) / len(sizes)


def _slope(across: list[float], up: list[float]) -> float:
    """Of the least-squares line, none of the points weighing more than another."""
    x, y = sum(across) / len(across), sum(up) / len(up)
    return sum((a - x) * (b - y) for a, b in zip(across, up, strict=True)) / sum((a - x) ** 2 for a in across)


def _half_symptom(case: Any, half: float, alpha_s: float, rate: float) -> Wrong:
    why, then = (
        f"your `half_bytes` is {byte_count(half, digits=4)}, for an alpha of {seconds(alpha_s)} and a rate of "
        f"{byte_rate(rate, digits=4)}",
        "look at a size of alpha x rate: there, the bytes take as long as alpha",
    )
    if close(half, alpha_s * rate / 2, rtol=1e-3):
        why += "; a message of alpha x rate / 2 bytes gets only a third of the rate"
    if close(half, max(case["sizes"]) / 2):
        return Wrong("your `half_bytes` is half of the largest size", why=why, next=then)
    if half in case["sizes"]:
        what = "your `half_bytes` is a size from the table, but half of the rate is reached between two rows"
        return Wrong(what, why=why, next=f"compute it from your fit: {then}")
    return Wrong("your `half_bytes` is not the size at which half of the rate is reached", why=why, next=then)


def _judge_bus(case: Any, bus: float, right: float) -> None:
    if close(bus, right):
        return
    plain = case["sizes"][-1] / case["took_s"][-1]
    took = f"{byte_count(case['sizes'][-1])} in {seconds(case['took_s'][-1])} on {case['ranks']} ranks"
    why = f"bus_rate() returned {byte_rate(bus, digits=4)} for {took}"
    if close(bus, plain):
        then = "in an all-reduce each rank sends more bytes than its buffer has: how many?"
        raise Wrong("your rate is that of the algorithm, not of the bus", why=why, next=then)
    if close(bus, right / 2):
        then = "count both halves: adding up the chunks, and passing on the sums"
        raise Wrong("your rate counts only one half of the all-reduce", why=why, next=then)
    ranks = case["ranks"]
    if close(bus, ranks * right):
        then = "count one link: it carries 2(P - 1)/P of the size"
        raise Wrong("your rate counts the bytes of all links together", why=why, next=then)
    if close(bus, plain * ranks / (2 * (ranks - 1))):
        then = "multiply by 2(P - 1)/P: a link carries more bytes than the buffer has"
        raise Wrong("your function divides the size by 2(P - 1)/P", why=why, next=then)
    then = "count 2(P - 1) chunks, each 1/P of the size"
    raise Wrong("your rate counts the wrong number of bytes on the bus", why=why, next=then)
