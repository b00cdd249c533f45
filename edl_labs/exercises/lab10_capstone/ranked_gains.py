"""rank_gains: what mends of a training script gain, predicted from its timeline and judged by running it again."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import seconds
from edl_labs.virtual import VirtualMachine
from edl_labs.virtual.operation_runs import run_s

COUNT = 4  # steps that are run, from a standstill until all is over
PICKS = 3  # as the text says
_OF_GAIN, _OF_RUN = 0.10, 0.01  # how far a gain may be from what the run then shows: the larger of the two


@exercise("rank_gains", digits=15)
class RankGains(Exercise):
    """The three mends to do first, each with what it gains when those before it are done.

    `replayed_s(spans, mends)` gives the seconds of a run with mends done, `rank(spans, mends)` the three.
    """

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"rank": list[Any]}

    def probe(self, student: Any, given: Any) -> Any:
        def replayed_s(*names: str) -> Any:
            return student.replayed_s(copy.deepcopy(given["spans"]), [dict(given["mends"][name]) for name in names])

        first, second = list(given["mends"])[:2]
        ranked = student.rank(copy.deepcopy(given["spans"]), copy.deepcopy(given["mends"]))
        return {
            "run_s": replayed_s(),
            "alone_s": [[name, replayed_s(name)] for name in given["mends"]],
            "both_s": replayed_s(first, second),
            "twice_s": student.replayed_s(copy.deepcopy(given["spans"]), copy.deepcopy(given["twice"])),
            "ranked": [list(one) if isinstance(one, (tuple, list)) else one for one in ranked],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run_s = seconds_with(case, ())
        if not close(got["run_s"], run_s, rtol=_OF_RUN):
            why = f"{_said(got['run_s'])} with no fix at all, and the timeline ends at {seconds(run_s)}"
            then = "replay the timeline as it is: when does each span start? The run ends with the latest of all ends"
            raise Wrong("with no fix, your run does not take as long as its timeline", why=why, next=then)
        for name, with_s in got["alone_s"]:
            _judge_alone(case, name, got["run_s"], with_s)
        _judge_both(case, got)
        _judge_twice(case, got)
        _judge_ranking(case, got["ranked"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """A replay with a slip, where all gains of all cases are those that it gives."""
        if all(_is_right_alone(case, one) for case, one in zip(cases, got, strict=True)):
            return None
        for slip, (what, why, then) in _SLIPS.items():
            if all(_slipped(case, one, slip) for case, one in zip(cases, got, strict=True)):
                return Wrong(what, why=why, next=then)
        return None

    def format_answer(self, case: Any, got: Any) -> str:
        """The three mends."""
        return "; ".join(f"{name}: {_said(gain_s)}" for name, gain_s in got["ranked"])

    def format_case(self, case: Any) -> str:
        """What a step does, and the mends."""
        lines = [f"{COUNT} steps in {seconds(seconds_with(case, ()))}; one step:"]
        lines += [f"  {_operation(one, case['spans'])}" for one in case["step"]]
        lines += [f"  {name}: {mend['times']:g} × {', '.join(mend['names'])}" for name, mend in case["mends"].items()]
        return "\n".join(lines)


def machine_of(case: Any) -> VirtualMachine:
    """The machine of a case."""
    return VirtualMachine(**case["machine"])


def seconds_with(case: Any, names: Iterable[str]) -> float:
    """What the run takes when it is run again with mends done, by name."""
    mends = [case["mends"][name] for name in names]
    return run_s(case["step"], machine_of(case), count=COUNT, mends=mends)


def _near(case: Any, said: Any, gain_s: float) -> bool:
    return close(said, gain_s, rtol=_OF_GAIN, atol=_OF_RUN * seconds_with(case, ()))


def _judge_alone(case: Any, name: str, before_s: Any, with_s: Any) -> None:
    run_s = seconds_with(case, ())
    gain_s = run_s - seconds_with(case, (name,))
    said_s = before_s - with_s
    if _near(case, said_s, gain_s):
        return
    why = f"{name}: {seconds(gain_s)} of {seconds(run_s)} are gained when the script runs again, not {_said(said_s)}"
    if gain_s < _OF_RUN * run_s and said_s > gain_s:
        then = "what overlapped it and lasted as long? Replay: a span starts when all that it needs is over"
        raise Wrong("what is hidden behind something else gains nothing", why=why, next=then)
    if said_s > gain_s:
        then = "behind what is mended waits the next one: which span starts earlier now, and which does not?"
        raise Wrong("a mend gains less than that", why=why, next=then)
    then = "which spans go, which become shorter, and which only waited for them?"
    raise Wrong("a mend gains more than that", why=why, next=then)


def _is_right_alone(case: Any, got: Any) -> bool:
    run_s = seconds_with(case, ())
    return all(
        _near(case, got["run_s"] - with_s, run_s - seconds_with(case, (name,))) for name, with_s in got["alone_s"]
    )


def _judge_both(case: Any, got: Any) -> None:
    first, second = list(case["mends"])[:2]
    run_s, with_s = seconds_with(case, ()), seconds_with(case, (first, second))
    if _near(case, got["run_s"] - got["both_s"], run_s - with_s):
        return
    alone = dict(map(tuple, got["alone_s"]))
    why = f"{first} and {second}: {_said(got['both_s'])} came back, and the run then takes {seconds(with_s)}"
    if any(close(got["both_s"], alone[name]) for name in (first, second)):
        raise Wrong("only one of two mends is done", why=why, next="`mends` is a list: all of it is done at once")
    raise Wrong(
        "the time with two mends together is wrong", why=why, next="shorten the spans of both, then replay once"
    )


def _judge_twice(case: Any, got: Any) -> None:
    """Two mends of the same operations: their factors multiply."""

    def with_s(*mends: Any) -> float:
        return run_s(case["step"], machine_of(case), count=COUNT, mends=mends)

    whole_s, right_s = seconds_with(case, ()), with_s(*case["twice"])
    if _near(case, got["run_s"] - got["twice_s"], whole_s - right_s):
        return
    factors = " and ".join(f"{mend['times']:g}" for mend in case["twice"])
    named = ", ".join(case["twice"][0]["names"])
    why = f"{named} by {factors}: {_said(got['twice_s'])} came back, and the run then takes {seconds(right_s)}"
    then = "multiply the factors of all fixes that name an operation"
    if any(close(got["twice_s"], with_s(mend), rtol=1e-3) for mend in case["twice"]):
        raise Wrong("only one of two fixes of the same operation counts", why=why, next=then)
    raise Wrong("the time with two fixes of the same operation is wrong", why=why, next=then)


def _judge_ranking(case: Any, ranked: Any) -> None:
    names = [name for name, _ in ranked]
    if len(names) != PICKS or len(set(names)) != PICKS or not set(names) <= set(case["mends"]):
        why = f"{', '.join(map(str, names))[:80] or 'nothing'} came back"
        raise Wrong("the ranking is not of three different mends", why=why, next="names of `mends`, the best first")
    run_s = seconds_with(case, ())
    alone = {name: run_s - seconds_with(case, (name,)) for name in case["mends"]}
    total_s = 0.0
    for place, (name, said_s) in enumerate(ranked):
        done = names[:place]
        now_s = seconds_with(case, done)
        gains = {one: now_s - seconds_with(case, (*done, one)) for one in case["mends"] if one not in done}
        best = max(gains, key=lambda one: gains[one])
        if gains[name] < gains[best] - _OF_RUN * run_s:
            raise _wrong_pick(names, place, gains, alone)
        total_s += gains[name]
        if not _near(case, said_s, gains[name]):
            raise _wrong_gain(
                case, name, place, said_s, {"here": gains[name], "alone": alone[name], "total": total_s, "now": now_s}
            )


def _wrong_pick(names: list[str], place: int, gains: dict[str, float], alone: dict[str, float]) -> Wrong:
    name, best = names[place], max(gains, key=lambda one: gains[one])
    before = f" after {', '.join(names[:place])}" if place else ""
    why = f"{name} gains {seconds(gains[name])}{before}, and {best} {seconds(gains[best])}"
    by_alone = sorted(alone, key=lambda one: -alone[one])
    if place and names[: place + 1] == by_alone[: place + 1]:
        then = "profile again: with the first mend done, replay each of the others on top of it"
        raise Wrong("mends are ranked by what each gains alone", why=why, next=then)
    if gains[name] <= min(gains.values()) + 1e-9:
        raise Wrong("the mend that gains least comes first", why=why, next="the largest gain comes first")
    return Wrong("another mend gains more at this place", why=why, next="compare the gains of all that are left")


def _wrong_gain(case: Any, name: str, place: int, said_s: Any, gains: dict[str, float]) -> Wrong:
    run_s = seconds_with(case, ())
    why = f"mend {place + 1}: {_said(said_s)} came back, and on top of those before it gains {seconds(gains['here'])}"
    if place and _near(case, said_s, gains["alone"]):
        then = "subtract the run with this one from the run with those before it, not from the first run"
        return Wrong("a later mend's gain is not what it gains alone", why=why, next=then)
    if place and _near(case, said_s, gains["total"]):
        return Wrong("gains are added up", why=why, next="each mend has its own: what it takes off what was left")
    left_s = gains["now"] - gains["here"]
    if close(said_s, gains["now"] / left_s, rtol=1e-3):
        return Wrong("a gain is given as a speed-up", why=why, next="seconds are asked: before, less after")
    shares = (gains["here"] / run_s, 100 * gains["here"] / run_s)
    if any(close(said_s, share, rtol=_OF_GAIN) for share in shares):
        return Wrong("a gain is given as a share of the run", why=why, next="seconds of the whole run are asked")
    if close(said_s, gains["here"] / COUNT, rtol=_OF_GAIN):
        return Wrong("a gain is given for one step", why=why, next="seconds of the whole run are asked")
    if close(-1 * said_s if type(said_s) in (int, float) else None, gains["here"], rtol=_OF_GAIN):
        return Wrong("a gain has the wrong sign", why=why, next="what was before, less what is left")
    then = "a gain is how much sooner the run ends, on top of the mends before: replay with and without it"
    if any(_near(case, said_s, took_s) for took_s in (left_s, gains["now"], run_s)):
        return Wrong("this is the time of a run, and not a gain", why=why, next=then)
    if any(close(said_s, case["slips"][slip][name]) for slip in ("shares", "shares of work")):
        return Wrong(_SHARES[0], why=f"{why}; its own spans become shorter by as much", next=_SHARES[2])
    return Wrong("the gain of a ranked mend is wrong", why=why, next="replay with and without it, and subtract")


def _slipped(case: Any, got: Any, slip: str) -> bool:
    """Whether every mend alone gains what the slip gives for it, and not what is right."""
    gains = case["slips"][slip]
    close_s = 1e-6 * seconds_with(case, ())
    return all(close(got["run_s"] - with_s, gains[name], atol=close_s) for name, with_s in got["alone_s"])


def _operation(one: Any, spans: Any) -> str:
    runs = [span for span in spans if span["name"] == one["name"] and span["kind"] not in ("call", "wait")]
    lasts_s = sum(span["end_s"] - span["start_s"] for span in runs) / max(1, len(runs))
    after = f" after {one['after']}" if "after" in one else ""
    return f"{one['name']:<14} {one.get('row', 'host' if one['op'] == 'host' else 'gpu'):<8} {seconds(lasts_s)}{after}"


def _said(value: Any) -> str:
    return seconds(value) if type(value) in (int, float) and abs(value) < 1e6 else str(value)[:40]


_SHARES = (
    "you read shares as gains",
    "each gain is the time that the mended spans take, whatever else ran at that time",
    "replay the run without them: the work that overlapped them still has to be done",
)
_SLIPS = {
    "shares": _SHARES,
    "shares of work": _SHARES,
    "waits": (
        "you replay a wait as if it were work",
        "it lasted until something else was over, and when that ends sooner, so does the wait",
        "a wait lasts no time of its own: it ends when what it comes after has ended",
    ),
    "rows": (
        "you run spans of one row at the same time",
        "a host, a stream and a link do one thing after another",
        "a span also starts no sooner than the one before it in its row has ended",
    ),
    "after": (
        "you start spans before what they need is over",
        "rows are replayed each for itself, as if none waited for another",
        "a span starts no sooner than all spans of its `after` have ended",
    ),
    "started": (
        "spans never start sooner than they did",
        "what waited for something that is now shorter starts sooner",
        "take nothing from `start_s` and `end_s` but how long a span lasts",
    ),
    "turned": (
        "you took the remaining time as the removed time",
        "`times` 0.1 leaves a tenth of the seconds",
        "multiply by `times`",
    ),
    "gone": (
        "you replay what becomes shorter as if it were gone",
        "`times` is the fraction of the seconds that remains, and it is 0 only if no time remains",
        "multiply by `times`",
    ),
    "calls": (
        "you shorten the host's calls together with their kernels",
        "the host takes as long to issue a short kernel as a long one, unless it issues none",
        "leave a call as it is while `times` is above 0",
    ),
    "issued": (
        "you still wait for an operation that is not issued",
        "with `times` 0 the host does not call for it either, and its next work begins sooner",
        "a call is gone where `times` is 0",
    ),
    "kept": (
        "you still wait for a reading that is gone",
        "with `times` 0 nothing is issued, so nothing waits",
        "drop the `after` of such a wait, too",
    ),
}
