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
            raise Wrong(
                what,
                why=f'expected "{want}"; {why}',
                next="for this call, check each of the six conditions in the text",
            )

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return score_above_chance(fractions, answers=len(BACKENDS))

    def format_case(self, case: Any) -> str:
        """The call, an entry in each line."""
        return "\n".join(f"{name}: {value}" for name, value in case["call"].items())


_SENTENCES = {
    "plain": ('Your function returned "math" for a plain call.', "nothing in this call excludes the fused kernel"),
    "mask": (
        'Your function returned "math" for a call with a mask.',
        "the CPU's flash kernel accepts masks, unlike CUDA's",
    ),
    "causal": (
        'Your function returned "math" for a call with is_causal.',
        "the fused kernel itself skips the later keys",
    ),
    "gradient": (
        'Your function returned "math" for inputs that need gradients.',
        "the fused kernel has a backward pass",
    ),
    "wide head": (
        'Your function returned "math" for a wide head.',
        "only CUDA's kernel is limited to a width of 256",
    ),
    "double": (
        'Your function returned "math" for float64.',
        "only CUDA's kernel is limited to fp16 and bf16",
    ),
    "dropout": (
        'Your function returned "flash" for a call with dropout.',
        "the CPU's fused kernel does not draw random numbers",
    ),
    "two widths": (
        'Your function returned "flash" for heads of two widths.',
        "the last size of value differs from that of query and key",
    ),
    "3-d mask": (
        'Your function returned "flash" for a mask of three dimensions.',
        "the fused kernel accepts only masks with 2 or 4 dimensions",
    ),
    "mask gradient": (
        'Your function returned "flash" for a mask that needs a gradient.',
        "the fused kernel does not compute a gradient for the mask",
    ),
    "strided": (
        'Your function returned "flash" for strided rows.',
        "the elements of a head must be contiguous",
    ),
    "broadcast": (
        'Your function returned "flash" for batches that are broadcast.',
        "the batch size of the query differs from that of key and value",
    ),
}
