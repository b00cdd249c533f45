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
                why = f"{got[name][:40]!r} came back; the names are {', '.join(known)}"
                raise Wrong(f"The {name} has no such name.", why=why, next="use the names of the table")
        if not close(got["bytes"], want["bytes"]):
            raise Wrong("The peak has the wrong size.", why=_sizes(got, want), next="add up the table's rows by moment")
        if got["moment"] != want["moment"]:
            why = f"{got['moment']!r} came back, and {want['moment']!r} holds most"
            raise Wrong("The peak is at another moment.", why=why, next="compare the sums of all four moments")
        if got["part"] != want["part"]:
            why = f"{got['part']!r} came back, and {want['part']!r} has most bytes at that moment"
            raise Wrong("Another part is the largest.", why=why, next="compare the four parts at the peak's moment")

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """A row of the table that was left out or taken for another one, where that gives all answers."""
        answers = [digest([one["moment"], one["part"], one["bytes"]]) for one in got]
        return named_slip(cases, answers, _SAID)

    def format_answer(self, case: Any, got: Any) -> str:
        """The three of them."""
        return f"{got['moment']}, {got['part']}, {byte_count(got['bytes'])}"


def _sizes(got: Any, want: Any) -> str:
    share = "" if not isfinite(got["bytes"]) else f", a ratio of {got['bytes'] / want['bytes']:.4g}"
    return f"{got['bytes']:.15g} bytes came back, and {want['bytes']:.15g} are right{share}"


_COUNT = "which tensors of a row for each token and a column for each word are alive at once?"
_SAID: dict[str, Sentence] = {
    "no_logits": ("The logits are left out.", "all answers are what the other rows give", _COUNT),
    "one_copy": (
        "The logits are counted once, in the type of the weights.",
        "log_softmax keeps its output; two gradients come on top",
        _COUNT,
    ),
    "no_fp32": (
        "The three copies are counted in the type of the weights.",
        "the loss is computed in fp32, so each copy has 4 bytes a value",
        "12 bytes a logit, whatever the type of the weights is",
    ),
    "no_master": (
        "The fp32 copy of the weights is left out.",
        "with bf16 weights the optimizer updates a copy in fp32",
        "a parameter in bf16 has 2 + 4 + 8 bytes of states",
    ),
    "gradients_from_the_start": (
        "The gradients are counted before they exist.",
        "a parameter's gradient is made when the backward pass reaches its layer",
        "at the loss there is none; later there are those of the layers after it",
    ),
    "nothing_recomputed": (
        "What a checkpointed layer computes again is left out.",
        "in its backward pass, one layer's activations are there in addition to the inputs",
        "add one layer's activations at the moments of the layers",
    ),
    "all_kept": (
        "Checkpointed layers are counted as if they kept everything.",
        "a checkpointed layer keeps only its input",
        "use step['checkpointed']",
    ),
    "one_table": (
        "One of the two tables is left out: embedding or head.",
        "the model has two of vocabulary × width",
        "count 12·layers·width² + 2·vocabulary·width parameters",
    ),
    "states_called_largest": (
        "The states are called the largest part in all cases.",
        "moment and bytes are right",
        "compare the four parts at the peak's moment",
    ),
    "loss_called_the_moment": (
        "The loss is taken for the peak in all cases.",
        "with few words, or few tokens, another moment holds more",
        "work out all four moments, and take the largest",
    ),
}
