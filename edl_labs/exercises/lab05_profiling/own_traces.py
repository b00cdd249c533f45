"""own_traces: a change to a loop of the student's own, judged by the two traces that are handed in."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

from edl_labs.checks import Case, Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.trace import TraceError
from edl_labs.trace.handed_in import OwnTrace, read_handed_in
from edl_labs.trace.own_change import OwnPair
from edl_labs.trace.packed_trace import FILES

ASKED = ("cause", "place", "change")
_LEAST_WORDS = 3  # "two loader workers" says what was changed, "workers" does not


@exercise("own_traces", trusting=True)
class OwnTraces(Exercise):
    """What limited a loop of one's own, where, and what was changed: named, and judged by two handed-in traces.

    `own_change(asked)` gives the cause, the place that the trace charges with it, or the change in words.
    """

    hand_ins: ClassVar[tuple[str, ...]] = FILES

    def cases(self, rng: Any) -> list[Case]:
        return [Case(given={"asked": asked}) for asked in ASKED]

    def probe(self, student: Any, given: Any) -> Any:
        # The judge looks up the place and the fall of the share of the cause that was named.
        return [student.own_change(given["asked"]), student.own_change("cause")]

    def compare(self, case: Case, got: Any, want: Any) -> None:
        said, cause = got
        pair = _pair(case.get("handed_in", {}))
        pair.require_same_work()
        cause = pair.require_cause(cause)
        if case["asked"] == "place":
            pair.require_place(cause, said)
        if case["asked"] == "change":
            if len(str(said).split()) < _LEAST_WORDS:
                raise Wrong(
                    "the change is not described",
                    why=f"{said!r} has fewer than {_LEAST_WORDS} words",
                    next="say in a few words what you changed in the loop",
                )
            pair.require_fall(cause)
            pair.require_possible_gain(cause)

    def public_want(self, case: Case, want: Any) -> Any:
        """Nothing that could be copied: whose trace it is decides."""
        return ["", ""]


def _pair(files: dict[str, bytes]) -> OwnPair:
    missing = [name for name in FILES if name not in files]
    if missing:
        raise Wrong(
            f"{' and '.join(missing)} cannot be found",
            why="the traces of your loop are read from files beside the notebook, of at most 5 MB each",
            next="run trace.hand_in(before, after) in this folder, and hand in both files with the notebook",
        )
    before, after = (_read(files[name], name) for name in FILES)
    return OwnPair(before, after)


@lru_cache(maxsize=2)  # the two files, which three cases ask about
def _read(data: bytes, name: str) -> OwnTrace:
    try:
        found = read_handed_in(data, name=name)
        found.diagnosis  # noqa: B018  (worked out once, and refused here where it cannot be)
        return found
    except TraceError as error:
        raise Wrong(error.what, why=error.why, next=error.next) from None
