"""By which other criterion a line was blamed: one that picks the lines of all cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from edl_labs.errors import Wrong

PATTERNS = ("gpu", "launch", "synchronisation", "data", "copy")
Charges = dict[tuple[str, str], float]
Picks = Callable[[Any, str, Charges, Any], set[str]]  # spans, pattern, right charges, own charges: who fits

_SOME_S = 1e-12  # lines that are charged with nothing may be in a dict, or not
_ENOUGH = 2  # wrong lines that a criterion picks, beside all that it picks rightly


def known_criterion(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The other criterion that picks every line that came back; None where there is none."""
    answers = [
        (case["spans"], case["pattern"], by_place(right), _in_order(ours), ours["line"], right["line"])
        for case, ours, right in zip(cases, got, want, strict=True)
    ]
    for asked in (PATTERNS, *((one,) for one in PATTERNS)):
        known = _CRITERIA if len(asked) > 1 else _HIDDEN_ONES
        found = [(what, then) for what, then, picks in known if _explains(picks, asked, answers)]
        said = list(dict.fromkeys(what for what, _ in found))
        if said:
            count = sum(pattern == asked[0] for _, pattern, *_ in answers)
            some = "both" if count == 2 else f"all {count}"
            of_one = f"{some} cases with {asked[0]!r}, the only cases that you got wrong"
            where = "all cases" if len(asked) > 1 else of_one
            return Wrong(
                ", or ".join(said[:2]),
                why=f"your lines are exactly those that this mistake produces, in {where}",
                next=found[0][1],
            )
    return None


def by_place(evidence: Any) -> Charges:
    """Seconds by pattern and line."""
    return {(pattern, line): spent_s for pattern, line, spent_s in evidence["charges"]}


def _explains(picks: Picks, asked: Iterable[str], answers: list[tuple[Any, str, Charges, Any, str, str]]) -> bool:
    """Whether a criterion picks what came back for the patterns asked, where something is wrong and nowhere else."""
    wrong = 0
    for spans, pattern, charges, own, line, right in answers:
        if pattern not in asked:
            if line != right:
                return False
            continue
        if line not in picks(spans, pattern, charges, own):
            return False
        wrong += line != right
    return wrong >= _ENOUGH


def _in_order(evidence: Any) -> Any:
    return [(pattern, line) for pattern, line, _ in evidence["charges"]]


def _most(spent: dict[str, float]) -> set[str]:
    """The lines that have most, but for what rounding does; none of an empty dict."""
    return {line for line, one in spent.items() if one >= max(spent.values()) - 1e-12}


def _sums(items: Iterable[tuple[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, spent in items:
        sums[name] = sums.get(name, 0.0) + spent
    return sums


def _of(charges: Charges, pattern: str) -> dict[str, float]:
    return {line: spent_s for (one, line), spent_s in charges.items() if pattern == one}


def _least(spans: Any, pattern: str, charges: Charges, own: Any) -> set[str]:
    return _most({line: -spent_s for line, spent_s in _of(charges, pattern).items()})


def _of_all_patterns(spans: Any, pattern: str, charges: Charges, own: Any) -> set[str]:
    return _most(_sums((line, spent_s) for (_, line), spent_s in charges.items()))


def _of_its_lines(spans: Any, pattern: str, charges: Charges, own: Any) -> set[str]:
    """Of the lines that the pattern charges, the one that all patterns together charge most."""
    mine = _of(charges, pattern)
    return _most(_sums((line, spent_s) for (_, line), spent_s in charges.items() if line in mine))


def _largest_charge(spans: Any, pattern: str, charges: Charges, own: Any) -> set[str]:
    return {line for (_, line), spent_s in charges.items() if spent_s == max(charges.values())}


def _largest_pattern(spans: Any, pattern: str, charges: Charges, own: Any) -> set[str]:
    largest = _most(_sums((of, spent_s) for (of, _), spent_s in charges.items()))
    return set().union(*(_most(_of(charges, of)) for of in largest))


def _last_name(spans: Any, pattern: str, charges: Charges, own: Any) -> set[str]:
    return {max(_of(charges, pattern))}


def _first_name(spans: Any, pattern: str, charges: Charges, own: Any) -> set[str]:
    return {min(_of(charges, pattern))}


def _first_charged(spans: Any, pattern: str, charges: Charges, own: Any, *, least_s: float = 0.0) -> set[str]:
    """The first line that the student's charges have for the pattern, of those with so many seconds."""
    return set([line for of, line in own if pattern == of and charges.get((of, line), 0.0) >= least_s][:1])


def _last_charged(spans: Any, pattern: str, charges: Charges, own: Any, *, least_s: float = 0.0) -> set[str]:
    return _first_charged(spans, pattern, charges, own[::-1], least_s=least_s)


_KINDS = {"gpu": ("kernel",), "launch": ("call", "python"), "synchronisation": ("wait",), "data": ("load",)}


def _spans_of(spans: Any, pattern: str, *, python: bool = True) -> Any:
    kinds = _KINDS.get(pattern, (pattern,))
    return [span for span in spans if span["kind"] in kinds and (python or span["kind"] != "python")]


def _length_s(span: Any) -> float:
    return float(span["end_s"] - span["start_s"])


def longest_line(spans: Any, pattern: str) -> str:
    """The line with the single longest span of the kind that the pattern's name suggests; of calls, with the most."""
    kind = {"launch": "call"}.get(pattern, _KINDS.get(pattern, (pattern,))[0])
    mine = [span for span in spans if span["kind"] == kind]
    if pattern == "launch":
        return min(_lengths(spans, pattern, {}, [], python=False), default="")
    return str(max(mine, key=_length_s, default={"line": ""})["line"])


def _longest(spans: Any, pattern: str, charges: Charges, own: Any, *, python: bool = True) -> set[str]:
    mine = _spans_of(spans, pattern, python=python)
    return {max(mine, key=_length_s)["line"]} if mine else set()


def _lengths(spans: Any, pattern: str, charges: Charges, own: Any, *, python: bool = True) -> set[str]:
    return _most(_sums((one["line"], _length_s(one)) for one in _spans_of(spans, pattern, python=python)))


def _most_often(spans: Any, pattern: str, charges: Charges, own: Any) -> set[str]:
    """Of the lines that the pattern charges, the one with the most spans of any kind."""
    return _most(_sums((one["line"], 1.0) for one in spans if one["line"] in _of(charges, pattern)))


def _most_of_a_kind(spans: Any, pattern: str, charges: Charges, own: Any, *, python: bool = True) -> set[str]:
    return _most(_sums((one["line"], 1.0) for one in _spans_of(spans, pattern, python=python)))


def _in_the_gaps(spans: Any, pattern: str, charges: Charges, own: Any, *, loads: bool = False) -> set[str]:
    return _most(idle_s(spans, loads=loads))


def idle_s(spans: Any, *, loads: bool = False) -> dict[str, float]:
    """By line, the seconds of its Python and calls (and loads) while the device is idle, whatever let it run dry."""
    device = sorted((span["start_s"], span["end_s"]) for span in spans if span["row"] != "host")
    end_s, stops = max(span["end_s"] for span in spans), [0.0]
    for _, stop in device:
        stops.append(max(stops[-1], stop))
    idle = [(was, begins) for was, (begins, _) in zip(stops, [*device, (end_s, end_s)], strict=True) if begins > was]
    kinds = ("call", "python", "load") if loads else ("call", "python")
    mine = [span for span in spans if span["row"] == "host" and span["kind"] in kinds]
    return _sums(
        (span["line"], min(span["end_s"], end) - max(span["start_s"], start))
        for span in mine
        for start, end in idle
        if min(span["end_s"], end) > max(span["start_s"], start)
    )


def _average(spans: Any, pattern: str, charges: Charges, own: Any) -> set[str]:
    """The line with the largest charge for each of its spans."""
    mine = _of(charges, pattern)
    return _most({line: spent_s / max(1, sum(one["line"] == line for one in spans)) for line, spent_s in mine.items()})


def _first_span(spans: Any, pattern: str, charges: Charges, own: Any, *, device: bool = False) -> set[str]:
    mine = [span for span in spans if span["row"] != "host"] if device else spans
    return {min(mine, key=lambda span: span["start_s"])["line"]}


_ONE = "use only the charges of the pattern passed to `blame()`, and return the line with the most seconds"
_SECONDS = "compare the lines' seconds: `max()` of a dict returns its largest key, unless `key=` says what to compare"
_MOVES = "update the largest seconds so far together with their line whenever you find a larger value"
_LAST = "you returned the last line that `charges()` returns for the pattern, regardless of its seconds"
_FIRST = "you returned the first line that `charges()` returns for the pattern, regardless of its seconds"
_DOWNWARDS = "use `max()`, or the last element of `sorted()`, which sorts in ascending order"
_NOT_THE_NUMBER = "add up the seconds that are charged to each line: a line with many short spans may cost little"
_NOT_AVERAGED = "add up a line's charges without dividing them: the step pays for all of them"
_HIDDEN = (
    "charge each part of the window to one line, then add up the charges: what runs while the device works is free"
)
_OTHERS = (
    "your code ignores the pattern: your line has the largest charge of all patterns together, or of the step's "
    "largest pattern"
)
_ALL_OF_A_LINE = (
    "you added up each line's seconds over all patterns: among the lines with this pattern, yours has the largest sum"
)
_LONGEST = "you returned the line with the pattern's longest span, which is not always the one to blame"
_ADDED = "you added up the whole durations of each line's spans, including what is hidden"
_AVERAGED = "you divided each line's charge by the number of its spans"
_COUNTED = "you counted spans instead of adding up seconds: your line has the most spans"
RAN_DRY = "you blamed the line that ran while the device was idle, not the one that had let it run out of work"
TO_THE_WAIT = "if a wait ended when the gap began, charge the gap's calls and Python to the line of that wait"
_HIDDEN_ONES: tuple[tuple[str, str, Picks], ...] = (
    *((_LONGEST, _HIDDEN, partial(_longest, python=python)) for python in (True, False)),
    (_LONGEST, _HIDDEN, lambda spans, pattern, charges, own: {longest_line(spans, pattern)}),
    *((_ADDED, _HIDDEN, partial(_lengths, python=python)) for python in (True, False)),
    (_AVERAGED, _NOT_AVERAGED, _average),
    *((RAN_DRY, TO_THE_WAIT, partial(_in_the_gaps, loads=loads)) for loads in (True, False)),
)
_CRITERIA: tuple[tuple[str, str, Picks], ...] = (
    ("you returned the line with the smallest charge, not the largest", _DOWNWARDS, _least),
    ("you returned the last line in alphabetical order, regardless of its seconds", _SECONDS, _last_name),
    ("you returned the first line in alphabetical order, regardless of its seconds", _SECONDS, _first_name),
    *((_LAST, _MOVES, partial(_last_charged, least_s=least_s)) for least_s in (0.0, _SOME_S)),
    *((_FIRST, _SECONDS, partial(_first_charged, least_s=least_s)) for least_s in (0.0, _SOME_S)),
    *((_OTHERS, _ONE, picks) for picks in (_of_all_patterns, _largest_charge, _largest_pattern)),
    (_ALL_OF_A_LINE, _ONE, _of_its_lines),
    *_HIDDEN_ONES,
    (_COUNTED, _NOT_THE_NUMBER, _most_often),
    *((_COUNTED, _NOT_THE_NUMBER, partial(_most_of_a_kind, python=python)) for python in (True, False)),
    *(("you returned the line of the first span", _HIDDEN, partial(_first_span, device=one)) for one in (True, False)),
)
