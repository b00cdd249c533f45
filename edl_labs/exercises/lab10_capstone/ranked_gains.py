"""rank_gains: what fixes of a training script gain, predicted from its timeline and judged by running it again."""

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
    """The three fixes to make first, each with what it gains when those before it are done.

    `replayed_s(spans, mends)` gives the seconds of a run with these fixes made, `rank(spans, mends)` the three.
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
            "ranked": [list(one) if isinstance(one, (tuple, list)) else [one] for one in ranked],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run_s = seconds_with(case, ())
        if not close(got["run_s"], run_s, rtol=_OF_RUN):
            why = f"without any fix, got {_said(got['run_s'])}, but the timeline ends at {seconds(run_s)}"
            then = (
                "replay the unchanged timeline: when does each span start? The run ends with the latest end of a span"
            )
            raise Wrong("without a fix, your run does not take as long as its timeline", why=why, next=then)
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
        """The three fixes."""
        return "; ".join(f"{name}: {_said(gain_s)}" for name, gain_s in got["ranked"])

    def format_case(self, case: Any) -> str:
        """What a step does, and the fixes."""
        lines = [f"{COUNT} steps in {seconds(seconds_with(case, ()))}; one step:"]
        lines += [f"  {_operation(one, case['spans'])}" for one in case["step"]]
        lines += [f"  {name}: {mend['times']:g} × {', '.join(mend['names'])}" for name, mend in case["mends"].items()]
        return "\n".join(lines)


def machine_of(case: Any) -> VirtualMachine:
    """The machine of a case."""
    return VirtualMachine(**case["machine"])


def seconds_with(case: Any, names: Iterable[str]) -> float:
    """What the run takes when it is run again with fixes made, by name."""
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
    why = (
        f"{name}: got a gain of {_said(said_s)}, but when the script runs with this fix, it gains "
        f"{seconds(gain_s)} of {seconds(run_s)}"
    )
    if gain_s < _OF_RUN * run_s and said_s > gain_s:
        then = (
            "which other work overlapped this operation and lasted as long? A span starts when everything that it "
            "needs has ended"
        )
        raise Wrong("your replay shows a gain for an operation that other work hides", why=why, next=then)
    if said_s > gain_s:
        then = "which spans start earlier after the fix, and which ones still have to wait for others?"
        raise Wrong("your gain for a fix is too large", why=why, next=then)
    then = (
        "which spans disappear, which become shorter, and which start earlier because they only waited for these spans?"
    )
    raise Wrong("your gain for a fix is too small", why=why, next=then)


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
    why = f'with "{first}" and "{second}", got {_said(got["both_s"])}, but the run takes {seconds(with_s)}'
    if any(close(got["both_s"], alone[name]) for name in (first, second)):
        raise Wrong(
            "your replay applies only one of the two fixes", why=why, next="apply all fixes in the list `mends` at once"
        )
    then = "shorten the spans that either fix affects, then replay once"
    raise Wrong("your time with two fixes together is wrong", why=why, next=then)


def _judge_twice(case: Any, got: Any) -> None:
    """Two mends of the same operations: their factors multiply."""

    def with_s(*mends: Any) -> float:
        return run_s(case["step"], machine_of(case), count=COUNT, mends=mends)

    whole_s, right_s = seconds_with(case, ()), with_s(*case["twice"])
    if _near(case, got["run_s"] - got["twice_s"], whole_s - right_s):
        return
    factors = " and ".join(f"{mend['times']:g}" for mend in case["twice"])
    named = ", ".join(case["twice"][0]["names"])
    why = f"{named}, with `times` {factors}: got {_said(got['twice_s'])}, but the run takes {seconds(right_s)}"
    then = "multiply the factors of all fixes that affect the same operation"
    if any(close(got["twice_s"], with_s(mend), rtol=1e-3) for mend in case["twice"]):
        raise Wrong("your replay applies only one of two fixes of the same operation", why=why, next=then)
    raise Wrong("your time with two fixes of the same operation is wrong", why=why, next=then)


def _judge_ranking(case: Any, ranked: Any) -> None:
    if odd := [one for one in ranked if len(one) != 2]:
        why = f"an entry of your list is {str(odd[0][0] if len(odd[0]) == 1 else odd[0])[:60]!r}"
        then = "return a pair (name, gain in seconds) for each of the three fixes"
        raise Wrong("rank() did not return pairs of a name and a gain", why=why, next=then)
    names = [name for name, _ in ranked]
    if len(names) != PICKS or len(set(names)) != PICKS or not set(names) <= set(case["mends"]):
        why = f"got {', '.join(map(str, names))[:80] or 'no names'}"
        then = "return three different names from `mends`, the best fix first"
        raise Wrong("your ranking does not contain three different fixes", why=why, next=then)
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
    before = f" after {', '.join(map(repr, names[:place]))}" if place else ""
    why = f"{name!r} gains {seconds(gains[name])}{before}, but {best!r} gains {seconds(gains[best])}"
    by_alone = sorted(alone, key=lambda one: -alone[one])
    if place and names[: place + 1] == by_alone[: place + 1]:
        then = "profile again after each fix: apply the first fix, and replay each other fix on top of it"
        raise Wrong("your function ranks the fixes by what each of them gains alone", why=why, next=then)
    if gains[name] <= min(gains.values()) + 1e-9:
        raise Wrong(
            "your function chooses the fix with the smallest gain", why=why, next="choose the fix with the largest gain"
        )
    then = "compare the gains of all remaining fixes"
    return Wrong("at this place in your ranking, a different fix gains more", why=why, next=then)


def _wrong_gain(case: Any, name: str, place: int, said_s: Any, gains: dict[str, float]) -> Wrong:
    run_s = seconds_with(case, ())
    before = "" if not place else " after the first fix" if place == 1 else f" after the first {place} fixes"
    why = f"fixes[{place}]: got {_said(said_s)}, but it gains {seconds(gains['here'])}{before}"
    if place and _near(case, said_s, gains["alone"]):
        then = "subtract the time with this fix from the time with only the earlier fixes, not from the original time"
        return Wrong("your function returns the gain of a later fix as if it were the only fix", why=why, next=then)
    if place and _near(case, said_s, gains["total"]):
        return Wrong(
            "your gains are running totals",
            why=why,
            next="count only the time by which each fix shortens the previous run",
        )
    left_s = gains["now"] - gains["here"]
    if close(said_s, gains["now"] / left_s, rtol=1e-3):
        return Wrong(
            "your function returns a gain as a speed-up",
            why=why,
            next="return seconds: the time before minus the time after",
        )
    shares = (gains["here"] / run_s, 100 * gains["here"] / run_s)
    if any(close(said_s, share, rtol=_OF_GAIN) for share in shares):
        return Wrong(
            "your function returns a gain as a share of the run",
            why=why,
            next="return the seconds that the whole run gains",
        )
    if close(said_s, gains["here"] / COUNT, rtol=_OF_GAIN):
        return Wrong(
            "your function returns a gain for only one step",
            why=why,
            next="return the seconds that the whole run gains",
        )
    if close(-1 * said_s if type(said_s) in (int, float) else None, gains["here"], rtol=_OF_GAIN):
        return Wrong(
            "one of your gains has the wrong sign",
            why=why,
            next="subtract the time after the fix from the time before it",
        )
    then = "replay with and without the fix, and return how much sooner the run ends"
    if any(_near(case, said_s, took_s) for took_s in (left_s, gains["now"], run_s)):
        return Wrong("your function returns the time of a run instead of a gain", why=why, next=then)
    if any(close(said_s, case["slips"][slip][name]) for slip in ("shares", "shares of work")):
        return Wrong(
            _SHARES[0], why=f"{why}; your value is the time by which the fix shortens its own spans", next=_SHARES[2]
        )
    return Wrong(
        "your gain of a ranked fix is wrong", why=why, next="replay with and without the fix, and subtract the times"
    )


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
    "your function uses shares of the timeline as gains",
    "each gain is the time by which the fixed spans themselves become shorter, whatever else ran at that time",
    "replay the run with the fix: work that overlapped these spans still has to be done",
)
_SLIPS = {
    "shares": _SHARES,
    "shares of work": _SHARES,
    "waits": (
        "your replay treats a wait as if it were work",
        "a wait lasts until other spans have ended, and if those end sooner, so does the wait",
        "give a wait no length of its own: it ends as soon as the spans that it waits for have ended",
    ),
    "rows": (
        "your replay runs spans of one row at the same time",
        "a host, a stream or a link does only one thing at a time",
        "start a span only after the previous span in its row has ended, too",
    ),
    "after": (
        "your replay starts spans before the spans that they need have ended",
        "your replay treats the rows as if no row had to wait for another row",
        "start a span only after all spans in its `after` have ended",
    ),
    "started": (
        "in your replay, no span starts sooner than in the timeline",
        "a span that waited for a shortened span can start sooner",
        "use `start_s` and `end_s` only to compute how long a span lasts",
    ),
    "turned": (
        "your replay removes the time that should remain",
        "with `times` = 0.1, a tenth of the seconds remains",
        "multiply by `times`",
    ),
    "gone": (
        "your replay treats shorter spans as if they were gone",
        "`times` is the fraction of the seconds that remains, and it is 0 only if no time remains",
        "multiply by `times`",
    ),
    "calls": (
        "your replay shortens the host's calls together with their kernels",
        "issuing a short kernel takes the host as long as issuing a long one",
        "keep the length of a call if `times` is above 0",
    ),
    "issued": (
        "your replay keeps the call of an operation that is not issued",
        "with `times` = 0, the host does not issue the operation, so the host's next work begins sooner",
        "give a call no length if `times` is 0",
    ),
    "kept": (
        "your replay keeps a wait that is not issued",
        "with `times` = 0, the wait itself is not issued, so its row does not wait",
        "ignore the `after` of such a wait, too",
    ),
}
