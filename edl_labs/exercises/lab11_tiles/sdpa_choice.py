"""which_sdpa: whether PyTorch takes its fused attention for a call on a CPU, or composes it from products."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, exercise, score_above_chance
from edl_labs.errors import Wrong

BACKENDS = ("flash", "math")


@exercise("which_sdpa")
class WhichSdpa(Exercise):
    """`which_sdpa(call)` gives one of BACKENDS for a described call; as many of each, corrected for chance."""

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return student.which_sdpa(dict(given["call"]))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got not in BACKENDS:
            why = f"expected one of {', '.join(BACKENDS)}"
            raise Wrong(f"{got[:40]!r} is not a backend.", why=why, next='return "flash" or "math"')
        if got != want:
            what, why = _SENTENCES[case["feature"]]
            raise Wrong(what, why=f"expected {want}; {why}", next="go through the text's six conditions for this call")

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return score_above_chance(fractions, answers=len(BACKENDS))

    def format_case(self, case: Any) -> str:
        """The call, an entry in each line."""
        return "\n".join(f"{name}: {value}" for name, value in case["call"].items())


_SENTENCES = {
    "plain": ("A plain call runs fused.", "nothing in it excludes the fused kernel"),
    "mask": ("On a CPU, a mask does not exclude flash.", "only CUDA's flash kernel takes no mask"),
    "causal": ("is_causal does not exclude flash.", "the fused kernel skips the later keys itself"),
    "gradient": ("Gradients of the inputs do not exclude flash.", "the fused kernel has a backward pass"),
    "wide head": ("A wide head does not exclude flash on a CPU.", "only CUDA's kernel ends at a width of 256"),
    "double": ("float64 does not exclude flash on a CPU.", "only CUDA's kernel is limited to fp16 and bf16"),
    "dropout": ("Dropout excludes flash on a CPU.", "the CPU's fused kernel draws no random numbers"),
    "two widths": ("Heads of two widths exclude flash.", "value has another last size than query and key"),
    "3-d mask": ("A mask of three dimensions excludes flash.", "the fused kernel takes masks with 2 or 4 dimensions"),
    "mask gradient": ("A mask that needs a gradient excludes flash.", "the fused kernel computes none for the mask"),
    "strided": ("Strided rows exclude flash.", "the elements of a head must be contiguous"),
    "broadcast": ("Batches that are broadcast exclude flash.", "the query has another batch size than key and value"),
}
