"""diagnose: deck [002]'s recipe on drawn layers and machines."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import beyond_chance, exercise
from edl_labs.errors import Wrong

LIMITERS = ("latency", "math", "memory")


@exercise("diagnose", uses=("intensity",))
class Diagnose:
    """Latency, math or memory: what limits a layer on a machine.

    `student.diagnose(layer, machine)` gives one of LIMITERS; six of each, corrected for chance.
    """

    def probe(self, student: Any, case: Any) -> Any:
        return student.diagnose(dict(case["layer"]), dict(case["machine"]))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got not in LIMITERS:
            why = f"they are {', '.join(LIMITERS)}"
            raise Wrong(f"{got[:40]!r} is not one of the three answers", why=why, next="return one of them")
        if got != want:
            raise Wrong(f"this layer is not limited by {got}", why=_IF[got], next=_NEXT[got])

    def raised(self, case: Any, kind: str) -> Wrong | None:
        """A field that other kinds of layers have."""
        if kind != "KeyError":
            return None
        layer = case["layer"]
        return Wrong(
            f"a field was looked up that a {layer['kind']} does not have",
            why=f"it has {', '.join(layer)}",
            next="count the blocks of each kind of layer from the fields that it has",
        )

    def throughout(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Math and memory changed places everywhere, and nothing else is wrong."""
        other = {"math": "memory", "memory": "math", "latency": "latency"}
        if not all(answer == other[right] for answer, right in zip(got, want, strict=True)):
            return None
        return Wrong(
            "the comparison with the ridge is the wrong way round",
            why="latency is right everywhere; math and memory have changed places everywhere",
            next="above the ridge there are more FLOPs for each byte than the machine can do: math is the limit",
        )

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return beyond_chance(fractions, answers=len(LIMITERS))

    def show(self, case: Any) -> str:
        return "\n".join(
            f"{name}: {', '.join(f'{k} {v:g}' if type(v) is float else f'{k} {v}' for k, v in row.items())}"
            for name, row in case.items()
        )


_IF = {
    "latency": "it has at least one thread block for each SM",
    "math": "that needs a block for each SM, and an intensity above the ridge",
    "memory": "that needs a block for each SM, and an intensity below the ridge",
}
_NEXT = {
    "latency": "count the blocks again: whole tiles along both sides, the last perhaps not full; one an SM is enough",
    "math": "count the blocks first; then compare FLOP/B with this machine's ridge, not another's",
    "memory": "count the blocks first; then compare FLOP/B with this machine's ridge, not another's",
}
