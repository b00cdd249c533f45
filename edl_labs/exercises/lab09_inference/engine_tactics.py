"""fuse_and_tune: a tactic for each layer or row of layers, by measured times, with the price of conversions."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import percent, seconds

SLACK = 0.02  # promised in the lab's text
PROBLEMS = ("one format", "fusions", "formats", "all")


@exercise("fuse_and_tune")
class EngineOfTactics(Exercise):
    """The typical times of tactics, and the fastest engine: with one format, with fusions, with formats, with all.

    A case has a network's tactics and, by problem, what known mistakes would choose (`slips`). The evidence has the
    typical time of each tactic and the names of each chosen engine.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        typical = [student.typical_s([*one["times_s"]]) for one in given["tactics"]]
        plans = {}
        for problem in PROBLEMS:
            layers, tactics, reformat_s = asked(given, problem)
            names = student.fuse_and_tune(layers, tactics, reformat_s, given=given["given"], wanted=given["wanted"])
            plans[problem] = names
        return {"typical": typical, "plans": plans}

    def student_inputs(self, case: Any) -> Any:
        """The whole problem, by the parameters' names."""
        layers, tactics, reformat_s = asked(case, "all")
        given = {"given": case["given"], "wanted": case["wanted"]}
        return {"layers": layers, "tactics": tactics, "reformat_s": reformat_s, **given}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for one, found, right in zip(case["tactics"], got["typical"], want["typical"], strict=True):
            if not close(found, right):
                raise _told_time(one["times_s"], found, right)
        time_s = {one["name"]: right for one, right in zip(case["tactics"], want["typical"], strict=True)}
        for problem in PROBLEMS:
            _judge_plan(case, problem, got["plans"][problem], want["plans"][problem], time_s)

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """What a ValueError says: somewhere there was nothing to take the least of."""
        if error != "ValueError":
            return None
        why = "your code raised ValueError, as min() does on an empty list"
        then = "after a tactic, continue with layer `last` + 1: does your search reach every layer in every format?"
        return Wrong("your search needs a layer that it has not reached with any tactic", why=why, next=then)

    def format_case(self, case: Any) -> str:
        """The network in a line or two."""
        prices = ", ".join(seconds(one) for one in case["reformat_s"])
        formats = sorted({one["reads"] for one in case["tactics"]})
        return (
            f"{case['layers']} layers, {len(case['tactics'])} tactics, formats {', '.join(formats)}; "
            f"the engine's input is {case['given']}, its output {case['wanted']}; conversions take {prices}"
        )

    def format_answer(self, case: Any, got: Any) -> str:
        """The engine for the whole problem."""
        return f"with all tactics: {', '.join(map(str, got['plans']['all']))}"


def asked(case: Any, problem: str) -> tuple[int, list[dict[str, Any]], list[float]]:
    """Layers, tactics and conversions of a part of the case: one format alone, no fusions, or all of it."""
    one_format, alone = problem in ("one format", "fusions"), problem in ("one format", "formats")
    tactics = [
        {**one, "times_s": [*one["times_s"]]}
        for one in case["tactics"]
        if not (alone and one["first"] != one["last"])
        and not (one_format and {one["reads"], one["writes"]} != {case["given"]})
    ]
    return case["layers"], tactics, [*case["reformat_s"]]


def _told_time(times_s: list[float], found: float, right: float) -> Wrong:
    why = f"got {seconds(found)}, expected {seconds(right)}, for the runs {', '.join(seconds(one) for one in times_s)}"
    warm = times_s[1:]
    every = sorted(times_s)
    if any(
        close(found, one) for one in (sum(times_s) / len(times_s), every[len(every) // 2], times_s[0], max(times_s))
    ) or (close(found, (every[len(every) // 2] + every[len(every) // 2 - 1]) / 2)):
        return Wrong(
            "your code counts the first run, which also loads the kernel", why=why, next="exclude the first run"
        )
    if close(found, sum(warm) / len(warm)):
        then = "take the median: every interruption raises the mean"
        return Wrong("your code takes the mean, which includes interrupted runs", why=why, next=then)
    if close(found, min(warm)):
        return Wrong("your code takes the fastest run, not a typical one", why=why, next="take the median")
    if close(found, times_s[1 + len(warm) // 2]):
        return Wrong(
            "your code takes the run in the middle of the unsorted list",
            why=why,
            next="sort the times before you take the median",
        )
    return Wrong(
        "your result is not the median of the warm runs",
        why=why,
        next="sort the warm runs and take the one in the middle",
    )


_BEHIND = (
    "your code chooses each tactic without regard to those after it",
    "choose each tactic together with those that follow it",
)
_UNFUSED = (
    "your engine fuses no layers",
    "a tactic with `first` < `last` computes several layers in one kernel: after it, continue with layer `last` + 1",
)
_UNPAID = {
    "fastest": ("your code does not count conversions", "add the time of a conversion where two formats differ"),
    "no output": (
        "your code does not count the conversion of the output",
        "add a conversion if the last tactic does not write the format `wanted`",
    ),
    "no input": (
        "your code does not count the conversion of the input",
        "add a conversion if the first tactic does not read the format `given`",
    ),
    "one": (
        "your engine stays in one format",
        "convert wherever later layers gain more time than the conversion costs",
    ),
    "greedy": _BEHIND,
}
_SLIPS = {
    "one format": {
        "first runs": (
            "your code compares tactics by their first runs",
            "use `typical_s` for every tactic that you compare",
        ),
        "means": (
            "your code compares tactics by their mean times",
            "use `typical_s` for every tactic that you compare",
        ),
        "slowest": ("your code chooses the slowest tactics", "choose the shortest time"),
    },
    "fusions": {
        "none": _UNFUSED,
        "longest": ("your code fuses layers wherever possible", "compare the times: a fused kernel may be slower"),
        "greedy": _BEHIND,
        "always": (
            "your code counts a conversion between equal formats",
            "count a conversion only where the formats differ",
        ),
    },
    "formats": _UNPAID,
    "all": {**_UNPAID, "none": _UNFUSED},
}


def _judge_plan(case: Any, problem: str, got: Any, want: Any, time_s: Any) -> None:
    layers, tactics, reformat_s = asked(case, problem)
    known = {one["name"]: one for one in tactics}
    _judge_cover(layers, known, got, problem)
    mine_s, best_s = (price_s(case, [known[name] for name in names], reformat_s, time_s) for names in (got, want))
    if mine_s <= (1 + SLACK) * best_s:
        return
    spent = f"{seconds(mine_s)}, {percent(mine_s / best_s - 1)} more than the fastest engine"
    why = f"for the problem {problem!r} ({_WITH[problem]}), your engine takes {spent}"
    for name, (what, then) in _SLIPS[problem].items():
        if got == case["slips"][problem][name]:
            raise Wrong(what, why=why, next=then)
    raise Wrong(_OTHER[problem], why=why, next="minimise the sum of all typical times and conversion times")


_WITH = {
    "one format": "one format and no fusions",
    "fusions": "one format and fusions",
    "formats": "several formats and no fusions",
    "all": "all tactics",
}
_OTHER = {
    "one format": "your code does not choose the fastest tactic for each layer",
    "fusions": "a different choice of fused layers is faster",
    "formats": "a different choice of formats is faster",
    "all": "a different combination of fusions and formats is faster",
}


def _judge_cover(layers: int, known: Any, names: Any, problem: str) -> None:
    """Wrong unless the tactics compute each layer once, in their order."""
    due = 0
    for name in names:
        if name not in known:
            why = f"got {name!r}, with {_WITH[problem]}"
            raise Wrong(
                "your engine contains a name that is not a tactic",
                why=why,
                next="return the names of tactics as strings",
            )
        first, last = known[name]["first"], known[name]["last"]
        if first < due:
            why = f"{name} begins with layer {first}, but layers up to {due - 1} are already computed"
            raise Wrong("your engine computes a layer twice", why=why, next="continue with layer `last` + 1")
        if first > due:
            raise Wrong(
                "your engine skips a layer",
                why=f"{name} begins with layer {first}, but layer {due} is next",
                next="compute the layers in order",
            )
        due = last + 1
    if due < layers:
        raise Wrong(
            "your engine ends before the network does",
            why=f"layer {due} is missing; the network has {layers} layers, counted from 0",
            next="continue until all layers are computed",
        )


def price_s(case: Any, plan: list[Any], reformat_s: list[float], time_s: Any) -> float:
    """What an engine takes: its kernels, and a conversion where a format is not the one before."""
    form, total_s = case["given"], 0.0
    for one in plan:
        total_s += time_s[one["name"]] + (reformat_s[one["first"]] if one["reads"] != form else 0.0)
        form = one["writes"]
    return total_s + (reformat_s[-1] if form != case["wanted"] else 0.0)
