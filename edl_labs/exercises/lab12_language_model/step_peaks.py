"""where_the_peak_is: the moment of a training step that holds most memory, its largest part, and its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.slip_digests import Sentence, digest, named_slip
from edl_labs.units import byte_count

MOMENTS = ("loss", "last layer", "first layer", "optimizer")
PARTS = ("states", "gradients", "activations", "logits")


@exercise("where_the_peak_is")
class WhereThePeakIs(Exercise):
    """`where_the_peak_is(step)` returns (moment, part, bytes): where a step needs most memory, and what is largest."""

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"where_the_peak_is": tuple[str, str, float]}

    def probe(self, student: Any, given: Any) -> Any:
        moment, part, size = student.where_the_peak_is(dict(given))
        return {"moment": str(moment), "part": str(part), "bytes": float(size)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for name, known in (("moment", MOMENTS), ("part", PARTS)):
            if got[name] not in known:
                why = f"got {got[name][:40]!r}, expected one of {', '.join(known)}"
                raise Wrong(f"The name of the {name} is unknown.", why=why, next="use one of the names in the text")
        if not close(got["bytes"], want["bytes"]):
            raise Wrong(
                "Your peak has the wrong size.",
                why=_sizes(got, want),
                next="for each moment, add up the rows of the table",
            )
        if got["moment"] != want["moment"]:
            why = f"got {got['moment']!r}, but memory is largest at {want['moment']!r}"
            raise Wrong("Your peak is at the wrong moment.", why=why, next="compare the sums of all four moments")
        if got["part"] != want["part"]:
            why = f"got {got['part']!r}, but {want['part']!r} has the most bytes at that moment"
            raise Wrong(
                "At the peak, a different part is the largest.",
                why=why,
                next="compare the four parts at the moment of the peak",
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """A row of the table that was left out or taken for another one, where that gives all answers."""
        answers = [digest([one["moment"], one["part"], one["bytes"]]) for one in got]
        return named_slip(cases, answers, _SAID)

    def format_answer(self, case: Any, got: Any) -> str:
        """The three of them."""
        return f"{got['moment']}, {got['part']}, {byte_count(got['bytes'])}"


def _sizes(got: Any, want: Any) -> str:
    share = "" if not isfinite(got["bytes"]) else f", a ratio of {got['bytes'] / want['bytes']:.4g}"
    return f"got {got['bytes']:.15g} bytes, expected {want['bytes']:.15g}{share}"


_COUNT = "how many tensors with a row per position and a column per word are in memory at the same time?"
_SAID: dict[str, Sentence] = {
    "no_logits": ("Your function leaves out the logits.", "all your answers are sums of the other parts", _COUNT),
    "one_copy": (
        "Your function counts the logits once, in the type of the weights.",
        "in addition to the output of log_softmax, there are two gradients",
        _COUNT,
    ),
    "no_fp32": (
        "Your function counts the three copies of the logits in the type of the weights.",
        "the loss is computed in fp32, so each copy takes 4 bytes per value",
        "count 12 bytes per logit, for any type of the weights",
    ),
    "no_master": (
        "Your function leaves out the fp32 copy of the weights.",
        "with bf16 weights, the optimizer updates a copy in fp32",
        "count 2 + 4 + 8 bytes of states per parameter in bf16",
    ),
    "gradients_from_the_start": (
        "Your function counts gradients before they exist.",
        "a parameter's gradient is computed when the backward pass reaches its layer",
        "count no gradients at the loss, and later only those of the layers that are finished",
    ),
    "nothing_recomputed": (
        "Your function leaves out what a checkpointed layer recomputes.",
        "during its backward pass, the activations of one layer are in memory in addition to the inputs",
        'add one layer\'s activations at the moments "last layer" and "first layer"',
    ),
    "all_kept": (
        "Your function counts checkpointed layers as if they kept everything.",
        "a checkpointed layer keeps only its input",
        "use step['checkpointed'] to decide what a layer keeps",
    ),
    "one_table": (
        "Your function leaves out one of the two tables: embedding or head.",
        "the model has two tables of vocabulary × width",
        "count 12·layers·width² + 2·vocabulary·width parameters",
    ),
    "states_called_largest": (
        "Your function returns the states as the largest part in all cases.",
        "the moment and the bytes are right",
        "compare the four parts at the moment of the peak",
    ),
    "loss_called_the_moment": (
        "Your function returns the loss as the peak in all cases.",
        "with few words or few tokens, memory is larger at another moment",
        "compute the sums of all four moments, and return the moment with the largest sum",
    ),
}
