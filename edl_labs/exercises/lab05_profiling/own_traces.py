"""own_traces: a change to a loop of the student's own, judged by the two traces that are handed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Case, Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.trace.own_change import OwnPair
from edl_labs.trace.packed_trace import FILES
from edl_labs.trace.pair_facts import Side, pair_facts

ASKED = ("cause", "place", "change")
_LEAST_WORDS = 3  # "two loader workers" says what was changed, "workers" does not


@exercise("own_traces", trusting=True)
class OwnTraces(Exercise):
    """What limited the student's own loop, where, and what was changed: named, and judged by two handed-in traces.

    `own_change(asked)` gives the cause, the place that the trace charges with it, or the change in words.
    """

    answers = "all"

    hand_ins: ClassVar[tuple[str, ...]] = FILES
    hand_in_reader: ClassVar[str] = "edl_labs.trace.pair_facts:pair_facts"

    def cases(self, rng: Any) -> list[Case]:
        return [Case(given={"asked": asked}) for asked in ASKED]

    def probe(self, student: Any, given: Any) -> Any:
        # The judge looks up the place and the fall of the share of the cause that was named.
        return [student.own_change(given["asked"]), student.own_change("cause")]

    def compare(self, case: Case, got: Any, want: Any) -> None:
        said, cause = got
        pair = _pair(case.get("handed_in") or pair_facts({}))
        pair.require_same_work()
        cause = pair.require_cause(cause)
        if case["asked"] == "place":
            pair.require_place(cause, said)
        if case["asked"] == "change":
            if len(str(said).split()) < _LEAST_WORDS:
                raise Wrong(
                    "your answer does not describe the change",
                    why=f"{said!r} has fewer than {_LEAST_WORDS} words",
                    next="say in a few words what you changed in the loop",
                )
            pair.require_fall(cause)
            pair.require_possible_gain(cause)

    def public_want(self, case: Case, want: Any) -> Any:
        """Nothing that could be copied: whose trace it is decides."""
        return ["", ""]


def _pair(read: Mapping[str, Any]) -> OwnPair:
    if "refused" in read:
        what, why, then = read["refused"]
        raise Wrong(what, why=why, next=then)
    before, after = (Side(**read[name]) for name in FILES)
    return OwnPair(before, after)
