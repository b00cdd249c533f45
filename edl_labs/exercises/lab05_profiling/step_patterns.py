"""name_the_pattern, blame and most_to_gain: what a step waits for, who is to blame, and what fixing it is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise, score_above_chance
from edl_labs.checks.evidence_form import answer_text
from edl_labs.errors import Wrong
from edl_labs.exercises.lab05_profiling.wrong_removals import known_slip
from edl_labs.exercises.lab05_profiling.wrongly_blamed import (
    RAN_DRY,
    TO_THE_WAIT,
    by_place,
    idle_s,
    known_criterion,
)
from edl_labs.exercises.lab05_profiling.wrongly_charged import known_charge
from edl_labs.units import seconds
from edl_labs.virtual import VirtualMachine

PATTERNS = ("gpu", "launch", "synchronisation", "data", "copy")
CAUSES = ("kernels", "launch", "synchronisation", "data", "copy")
# Four lines or more have what a pattern is made of; the one with the longest is never meant, each other as often.
_LINES = 3
# Of the drawn timelines, at most four of seventeen have one pattern.
_COMMONEST = 0.25
# Times of spans agree to a nanosecond, and a few pieces make a charge.
_NOTHING_S = 5e-9


@exercise("name_the_pattern")
class NameThePattern(Exercise):
    """What a step mostly waits for, from its timeline: one of five patterns.

    `charges(spans)` gives seconds by pattern and line, `name_the_pattern(spans)` the pattern with most of them.
    """

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"charges": dict[tuple[Any, Any], Any]}

    def probe(self, student: Any, given: Any) -> Any:
        name = student.name_the_pattern([dict(span) for span in given["spans"]])
        charged = student.charges([dict(span) for span in given["spans"]])
        return {"name": name, "charges": sorted([*place, charged[place]] for place in charged)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        name, right = got["name"], want["name"]
        if name not in PATTERNS:
            raise Wrong(
                f"{name[:40]!r} is not one of the five patterns",
                why=f"the patterns are {', '.join(PATTERNS)}",
                next="return one of these patterns",
            )
        if name != right:
            raise Wrong(f"this step is not bound by {name!r}", why=_IF[name], next=_NEXT[name])
        _judge_charges(_by_place(got["charges"]), _by_place(want["charges"]))

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What all wrong charges, or all wrong names, have in common."""
        return known_charge(cases, got, want)

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return score_above_chance(fractions, chance=_COMMONEST)

    def format_case(self, case: Any) -> str:
        return _shown(case["spans"])


@exercise("blame", uses=("name_the_pattern",))
class BlamedLine(Exercise):
    """The line of the script that costs a step most by a given pattern.

    `blame(spans, pattern)` gives the line of the script that costs the step most; corrected for chance.
    """

    answers = ("line",)

    def probe(self, student: Any, given: Any) -> Any:
        line = student.blame([dict(span) for span in given["spans"]], given["pattern"])
        return {"line": line, "charges": _charged(student, given["spans"])}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        line, right = got["line"], want["line"]
        if line == right:
            return
        if all(span["line"] != line for span in case["spans"]):
            raise Wrong(
                f"{line[:40]!r} is not a line of this timeline",
                why="each span has the line of the script that it comes from",
                next='return the "line" of a span',
            )
        pattern, costs = case["pattern"], by_place(want)
        of_each = ", ".join(f"{one} {seconds(costs.get((pattern, one), 0.0))}" for one in (line, right))
        ran_dry = pattern == "synchronisation" and (pattern, line) not in costs and line in idle_s(case["spans"])
        raise Wrong(
            RAN_DRY if ran_dry else f"a different line costs this step more time by {_WAY[pattern]}",
            why=f"the charges for {pattern!r} are: {of_each}; {_of_own(got, pattern, line, right, costs)}",
            next=TO_THE_WAIT
            if ran_dry
            else f"choose the line with the most seconds for {pattern!r} only: {_BLAME[pattern]}",
        )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Another criterion than the charges of the pattern, which picks every line that came back."""
        return known_criterion(cases, got, want)

    def format_answer(self, case: Any, got: Any) -> str:
        """The line."""
        return answer_text(got["line"])

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that guessing among a pattern's lines can bring."""
        return score_above_chance(fractions, chance=1 / _LINES)

    def format_case(self, case: Any) -> str:
        return f"which line costs the step most by {_WAY[case['pattern']]}?\n{_shown(case['spans'])}"


@exercise("most_to_gain")
class MostToGain(Exercise):
    """The speed-up from removing each of five causes, by simulating the step again, and the best of them.

    `most_to_gain(step, machine)` gives the best cause to remove, and the speed-up of removing each of CAUSES.
    """

    answers = ("best", "gains")

    returns: ClassVar[Mapping[str, Any]] = {"most_to_gain": tuple[Any, dict]}

    def probe(self, student: Any, given: Any) -> Any:
        step = [dict(operation) for operation in given["step"]]
        best, gains = student.most_to_gain(step, machine_of(given))
        as_before = [one for one in given["step"] if any(one.items() <= now.items() for now in step)]
        changed = sorted({one["op"] for one in given["step"] if one not in as_before})
        return {"best": best, "gains": sorted([cause, gains[cause]] for cause in gains), "changed": changed}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        mine, rights = (dict(map(tuple, side["gains"])) for side in (got, want))
        if set(mine) != set(CAUSES):
            raise Wrong(
                "each of the five causes must have a speed-up",
                why=f"expected {', '.join(CAUSES)}; got {', '.join(map(str, mine))[:80] or 'nothing'}",
                next="simulate the step once without each cause, and once unchanged",
            )
        for cause in CAUSES:
            if not close(mine[cause], rights[cause], rtol=1e-4):
                raise _gain_symptom(cause, said=mine[cause], right=rights[cause])
        if got["best"] not in mine or rights[got["best"]] < 0.99 * max(rights.values()):
            raise Wrong(
                f"{got['best'][:30]!r} is not the cause with the most to gain",
                why="the speed-ups are right, but a different one is larger",
                next="return the cause with the largest speed-up",
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Another number than the speed-up, a step that was changed, or another removal, where all cases show it."""
        return known_slip(cases, got, want)

    def format_answer(self, case: Any, got: Any) -> str:
        """The answer as it was given."""
        return answer_text([got["best"], dict(map(tuple, got["gains"]))])

    def format_case(self, case: Any) -> str:
        lines = [f"  {_operation(operation)}" for operation in case["step"]]
        host = {key: value for key, value in case["machine"].items() if key.endswith("overhead_s")}
        return "\n".join([", ".join(f"{key} = {1e6 * value:.3g} µs" for key, value in host.items()), *lines])


def machine_of(case: Any) -> VirtualMachine:
    """The machine of a case."""
    return VirtualMachine(**case["machine"])


def _by_place(charges: Any) -> dict[tuple[str, str], float]:
    """Seconds by pattern and line, without places that are charged with nothing."""
    return {(pattern, line): spent for pattern, line, spent in charges if type(spent) is str or abs(spent) > _NOTHING_S}


def _judge_charges(mine: dict[tuple[str, str], float], rights: dict[tuple[str, str], float]) -> None:
    """Wrong where a line is charged with more or less than it costs."""
    places = sorted({*mine, *rights})
    wrong = [place for place in places if not close(mine.get(place, 0.0), rights.get(place, 0.0), atol=_NOTHING_S)]
    if not wrong:
        return
    pattern, line = wrong[0]
    more = {place for place in wrong if mine.get(place, 0.0) > rights.get(place, 0.0)}
    sums = [
        {of: sum(spent for (one, _), spent in side.items() if one == of) for of in PATTERNS} for side in (mine, rights)
    ]
    why = (
        f"for {line} and {pattern}: expected {seconds(rights.get(wrong[0], 0.0))}, "
        f"got {seconds(mine.get(wrong[0], 0.0))}"
    )
    if all(close(sums[0][of], sums[1][of], atol=_NOTHING_S) for of in PATTERNS):
        then = "which line does each piece belong to? Charge the cost of a wait to the line of that wait"
        raise Wrong("in your answer, each pattern has the right seconds, but at the wrong lines", why=why, next=then)
    if any(("copy", at) in wrong for of, at in more if of == "synchronisation"):
        then = 'charge a wait whose name is "copy" to the pattern `copy`: it is a copy that blocked the host'
        raise Wrong("your code charges a copy that blocked the host to synchronisation", why=why, next=then)
    kinds = {of for of, _ in more}
    if kinds == {"copy"}:
        then = "subtract the part of the copy that overlaps with joined(kernels)"
        raise Wrong("your code charges a copy while a kernel runs", why=why, next=then)
    if kinds == {"gpu"}:
        then = "go through the kernels in order of their start, and count each only from the end of all earlier ones"
        raise Wrong("your code charges time twice when two kernels run at once", why=why, next=then)
    raise Wrong(
        "your code charges the wrong time to a line", why=why, next="go through the three rules, one span at a time"
    )


def _of_own(got: Any, pattern: str, line: str, right: str, costs: dict[tuple[str, str], float]) -> str:
    """What the student's own charges say of the two lines, where they say anything."""
    own = by_place(got)
    mine = [own.get((pattern, one), 0.0) for one in (line, right)]
    if not own:
        return "your `charges()` returned nothing that could be compared"
    if all(
        close(said, costs.get((pattern, one), 0.0), atol=1e-9) for said, one in zip(mine, (line, right), strict=True)
    ):
        return "your own charges are the same, but your `blame()` did not return the line with the larger one"
    return f"your own charges are {seconds(mine[0])} and {seconds(mine[1])}"


def _charged(student: Any, spans: Any) -> list[list[Any]]:
    """The charges by pattern and line in the student's order; empty where that function gives something else."""
    try:
        charged = student.charges([dict(span) for span in spans])
        return [[str(pattern), str(line), float(charged[pattern, line])] for pattern, line in charged]
    except Exception:  # they only explain a line, and blame may do without them
        return []


def _shown(spans: Any) -> str:
    lines = [
        f"{1e6 * s['start_s']:8.1f} to {1e6 * s['end_s']:8.1f} µs "
        f"{s['row']:<10} {s['kind']:<7} {s['name']:<12} {s['line']}"
        for s in spans
    ]
    return "\n".join(lines)


def _operation(operation: Any) -> str:
    size = f"{operation['nbytes']:,} bytes" if "nbytes" in operation else ""
    size = seconds(operation["duration_s"]) if "duration_s" in operation else size
    extra = "" if operation["op"] != "copy" else " pinned" if operation["pinned"] else " pageable"
    return f"{operation['line']:<14}{operation['op']:<8}{size}{extra}"


def _gain_symptom(cause: str, *, said: Any, right: float) -> Wrong:
    if type(said) in (int, float) and said and close(1 / said, right, rtol=1e-3) and not close(right, 1, rtol=1e-3):
        return Wrong(
            "one of your speed-ups is inverted",
            why=f"yours for {cause} is {said:.3g}, but a step that becomes faster has a speed-up above 1",
            next="divide the time of the unchanged step by the time without the cause",
        )
    more = type(said) in (int, float) and said > right
    return Wrong(
        f"removing {cause} gains less than your answer says"
        if more
        else f"the speed-up from removing {cause} is wrong",
        why=f"expected {right:.4g}, got {_short(said)}; {_REMOVED[cause]}",
        next="compare your changed step with the table in the text, operation by operation, then run step_s on it",
    )


def _short(said: Any) -> str:
    return f"{said:.4g}" if type(said) is float else str(said)[:40]


_IF = {
    "gpu": "a step is bound by its GPU if kernels run for more of the window than anything else costs",
    "launch": "a step is bound by launches if the device waits for calls and Python, while the host waits for nothing",
    "synchronisation": "a wait counts only if the device then has no work; waiting while the device works is free",
    "data": "loading counts only while nothing runs on the device; during kernels it is free",
    "copy": "a copy counts only while no kernel overlaps it",
}
_NEXT = {
    "gpu": "add up the kernels, counting overlapping time only once: how much of the window is left?",
    "launch": "when the device became idle, was the host waiting for it? And how much of the idle time was loading?",
    "synchronisation": "add up the time after each wait until the device works again, not the waits themselves",
    "data": "which loads happen while the device is idle?",
    "copy": "add up copies only where no kernel runs",
}
_WAY = {
    "gpu": "its kernels",
    "launch": "launching",
    "synchronisation": "waiting",
    "data": "loading",
    "copy": "copying",
}
_BLAME = {
    "gpu": "device time belongs to the line of its kernel; where kernels overlap, to the kernel that began first",
    "launch": "a call or Python costs the step time only while the device has nothing to do",
    "synchronisation": "a wait costs the time after it, until the device works again",
    "data": "a load costs the step time only while the device has nothing to do",
    "copy": "a copy costs the step time only while no kernel overlaps it",
}
_REMOVED = {
    "kernels": "each kernel takes half its time",
    "launch": "launches with only Python between them become one; Python before the first or after the last stays",
    "synchronisation": "only the operations `item` and `sync` are removed",
    "data": "only loads are removed",
    "copy": "each copy becomes pinned, and stays on its stream",
}
