"""zero: what a GPU holds and sends a step in each stage of ZeRO, with padded shards, frozen layers, micro-batches."""

from __future__ import annotations

import copy
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong

STAGES = ("0", "1", "2", "3")
PARTS = ("weights", "gradients", "optimizer")


@exercise("zero")
class Zero(Exercise):
    """The bytes that a GPU holds between passes, and those that it sends in a step, for each stage of ZeRO.

    `held_bytes(stage, ranks, recipe)` and `sent_bytes(stage, ranks, recipe)` give bytes. The evidence has both for all
    stages, and what they are made of: asked with one byte a parameter for one part, and none for the others.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        def asked(recipe: Any) -> dict[str, Any]:
            return {
                name: {stage: function(int(stage), given["ranks"], copy.deepcopy(recipe)) for stage in STAGES}
                for name, function in (("held", student.held_bytes), ("sent", student.sent_bytes))
            }

        alone = {part: asked({**given["recipe"], **dict.fromkeys(PARTS, 0), part: 1}) for part in PARTS}
        parts = {
            name: {stage: {part: alone[part][name][stage] for part in PARTS} for stage in STAGES}
            for name in ("held", "sent")
        }
        return {"bytes": asked(given["recipe"]), "parts": parts}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for name in ("held", "sent"):
            for stage in STAGES:
                for part in PARTS:
                    found, right = (one["parts"][name][stage][part] for one in (got, want))
                    if not close(found, right):
                        raise _symptom(case, name, stage, part, found, right)
                if not close(got["bytes"][name][stage], want["bytes"][name][stage]):
                    mine = f"a GPU {_SAYS[name]} {got['bytes'][name][stage]:,.12g} B"
                    why = f"in your answer for stage {stage}, {mine}; each part on its own is right"
                    raise Wrong(
                        "your answer is not the sum of a stage's parts",
                        why=why,
                        next="add weights, gradients and optimizer state",
                    )

    def format_answer(self, case: Any, got: Any) -> str:
        """The bytes of each stage."""
        return "; ".join(f"{name}: {', '.join(f'{one:g}' for one in got['bytes'][name].values())} B" for name in _SAYS)

    def format_case(self, case: Any) -> str:
        """The ranks and the recipe."""
        recipe = case["recipe"]
        each = ", ".join(f"{part} {recipe[part]}" for part in PARTS)
        sizes = ", ".join(map(str, recipe["layers"]))
        return (
            f"{case['ranks']} ranks; layers of {sizes} parameters, the first {recipe['frozen']} frozen; bytes per "
            f"parameter: {each}; {recipe['micro_batches']} micro-batches"
        )


_SAYS = {"held": "holds", "sent": "sends"}
_NAMES = {"weights": "weights", "gradients": "gradients", "optimizer": "optimizer state"}


def _symptom(case: Any, name: str, stage: str, part: str, found: Any, right: Any) -> Wrong:
    layers = case["recipe"]["layers"]
    why = (
        f"in your answer for stage {stage} on {case['ranks']} ranks, a GPU {_SAYS[name]} the {_NAMES[part]} of "
        f"{found:,.12g} parameters; the model has {sum(layers):,}, of which "
        f"{sum(layers[case['recipe']['frozen'] :]):,} are trained"
    )
    if name == "held" and found and found in (sum(range(len(layers))), sum(range(1, len(layers) + 1))):
        then = "use the entries of the list: each is a layer's number of parameters"
        return Wrong("your answer uses the layers' positions as their numbers of parameters", why=why, next=then)
    if name == "held":
        then = "which layers have this part, and is it whole or a shard in this stage?"
        return Wrong(f"in your answer, a GPU holds the wrong number of bytes of the {_NAMES[part]}", why=why, next=then)
    if not right:
        never = "which no stage sends" if part == "optimizer" else "which this stage does not send"
        what = f"in your answer, a GPU sends the {_NAMES[part]}, {never}"
        return Wrong(what, why=why, next="which part does one GPU hold that the other GPUs need?")
    if not found:
        then = "which GPUs hold full tensors after the update or before a pass, and which GPUs need them?"
        return Wrong(
            f"in your answer, a GPU does not send the {_NAMES[part]}, but in this stage it must", why=why, next=then
        )
    then = "count `ranks - 1` shards each time: how often is this part sent in a step, and for which layers?"
    return Wrong(f"in your answer, a GPU sends the wrong number of bytes of the {_NAMES[part]}", why=why, next=then)
