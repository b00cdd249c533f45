"""method_table: what a method does to a job's speed and memory, worked out instead of read from a table."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise, score_above_chance
from edl_labs.checks.evidence_form import answer_text
from edl_labs.errors import Wrong
from edl_labs.exercises.lab06_memory.method_symptoms import FREE, both_hidden, cost_mistake, sign_habit
from edl_labs.units import byte_count, seconds

METHODS = ("split", "accumulate", "checkpoint", "checkpoint and grow", "offload", "empty_cache")
SIGNS = ("+", "0", "-")
# Of the drawn jobs, seven of twenty-eight have the same pair of signs.
_COMMONEST = 0.27


@exercise("method_table")
class MethodTable(Exercise):
    """The effect of a method on a job: examples a second and bytes, each better (+), worse (-) or the same (0).

    `effect(method, job)` gives (speed, memory).
    """

    answers = ("signs",)

    answer_form: ClassVar[Any] = {"signs": ["", ""], "costs": ""}

    def probe(self, student: Any, given: Any) -> Any:
        signs = student.effect(given["method"], dict(given["job"]))
        return {"signs": signs, "costs": json.dumps(_costs(student, given["job"]))}

    def format_answer(self, case: Any, got: Any) -> str:
        """The signs: what `cost` gives is looked at only to say what is wrong."""
        return answer_text(got["signs"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What all answers have in common, where the costs that they come from show nothing."""
        answers = [
            (case, tuple(one["signs"]), tuple(right["signs"]))
            for case, one, right in zip(cases, got, want, strict=True)
        ]
        found = [cost_mistake(case["job"], *_read(*both)) for case, *both in zip(cases, got, want, strict=True)]
        costs = {one.what: one for one in found if one is not None}
        if len(costs) > 1:
            costs.pop(FREE, None)  # it fits wherever both copies together are shorter than both passes
        slow = any(case["method"] == "offload" and one == right and one[0] == "-" for case, one, right in answers)
        if [*costs] == [FREE] and slow:  # so copies are counted after all, where they are long enough
            return both_hidden()
        if costs:
            return next(iter(costs.values())) if len(costs) == 1 else None
        return sign_habit(answers)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        try:
            self._judge(case, got["signs"], want["signs"])
        except Wrong as wrong:
            raise cost_mistake(case["job"], *_read(got, want)) or wrong from None

    def _judge(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != 2 or any(one not in SIGNS for one in got):
            raise Wrong("two signs are wanted", why="each of +, 0 and -", next="return the speed's, then the memory's")
        if got[1] != want[1]:
            what, why, then = _MEMORY_SAID.get((case["method"], want[1], got[1]), _MEMORY[case["method"]])
            raise Wrong(what, why=f"{why}; {got[1]} came back", next=then)
        if got[0] != want[0]:
            what, why, then = _SPEED[case["method"], want[0]]
            raise Wrong(what, why=f"{why}; {got[0]} came back", next=then)

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return score_above_chance(fractions, chance=_COMMONEST)

    def format_case(self, case: Any) -> str:
        """The job in words."""
        job = case["job"]
        held = job["fixed_bytes"] + job["batch"] * job["example_bytes"]
        return "\n".join(
            [
                f"{case['method']}: {job['batch']} examples a step, {job['parts']} parts, {job['kept_share']} kept",
                f"  {seconds(job['example_s'])} an example, at least {seconds(job['least_s'])} a forward pass",
                f"  {seconds(job['reduce_s'])} all-reduce, {seconds(job['update_s'])} update, "
                f"{seconds(job['flush_s'])} to empty the cache",
                f"  {byte_count(held)} held, {byte_count(job['fixed_bytes'])} of it fixed, of "
                f"{byte_count(job['memory_bytes'])}; copies of {byte_count(job['copy_byte_per_s'])} a second",
            ]
        )


def _read(got: Any, want: Any) -> tuple[Any, Any]:
    try:
        return json.loads(got["costs"]), json.loads(want["costs"])
    except (ValueError, RecursionError):
        return [], []


def _costs(student: Any, job: Any) -> list[Any]:
    """What the student's own `cost`, which nobody asks for, says of four steps; nothing where it is another one."""
    batch, parts, kept = job["batch"], job["parts"], job["kept_share"]
    try:
        steps = [
            student.cost(dict(job), batch),
            student.cost(dict(job), batch, parts=parts),
            student.cost(dict(job), batch, kept=kept, runs=2),
            student.cost(dict(job), batch, kept=kept, offloaded=1 - kept),
        ]
        return [[float(time_s), float(held)] for time_s, held in steps]
    except Exception:
        return []


_MEMORY_SAID = {
    ("accumulate", "0", "+"): (
        "accumulation was taken for splitting the batch",
        "its micro-batches have `batch` examples each, and a step has `parts` times as many",
        "which of the two builds a larger batch from micro-batches of the same size?",
    ),
    ("checkpoint and grow", "0", "-"): (
        "the grown batch does not fit: the fixed bytes are there too",
        "it may grow until everything together fills the memory, as it was filled before",
        "what is left of the memory for examples?",
    ),
}
_MEMORY = {
    "split": (
        "the activations of one micro-batch at a time were not counted",
        "each micro-batch's backward pass lets go of what its forward pass left",
        "how many examples are held at once?",
    ),
    "accumulate": (
        "the micro-batches are as large as the batch was",
        "more of them come before an update, one after the other, and each adds to the same gradients",
        "how many examples are held at once?",
    ),
    "checkpoint": (
        "a checkpoint keeps a share of the activations",
        "parameters, gradients and optimizer stay as they are",
        "the share that is kept, and what is fixed",
    ),
    "checkpoint and grow": (
        "the larger batch takes the memory that was won",
        "it grows until the memory is full",
        "compare what is held afterwards with what was held before",
    ),
    "offload": (
        "activations on the host take no memory on the device",
        "a share of the activations is kept, and the rest waits on the host",
        "the share that is kept, and what is fixed",
    ),
    "empty_cache": (
        "empty_cache frees nothing that is in use",
        "what is held are tensors; the cache is what none of them needs",
        "which tensors does it let go of?",
    ),
}
_SPEED = {
    ("split", "-"): (
        "small micro-batches no longer fill the device",
        "a pass of a few examples takes as long as the least one",
        "work out a pass of one micro-batch",
    ),
    ("split", "0"): (
        "micro-batches that fill the device lose no time",
        "above the least time, twice the examples take twice as long",
        "work out a pass of one micro-batch",
    ),
    ("accumulate", "+"): (
        "fewer all-reduces were not counted",
        "gradients are exchanged and applied once for several batches",
        "seconds an example: what is done once a step is shared by all of them",
    ),
    ("accumulate", "0"): (
        "there is next to nothing to share",
        "what is done once a step takes less than 1 % of it",
        "seconds an example: what is done once a step is shared by all of them",
    ),
    ("checkpoint", "-"): (
        "the second forward pass costs time",
        "what was not kept is worked out again",
        "three forward passes' worth become four",
    ),
    ("checkpoint", "0"): (
        "a second forward pass is less than 1 % of this step",
        "the all-reduce takes nearly all of it",
        "seconds an example of the whole step, with what is done once in it",
    ),
    ("checkpoint and grow", "+"): (
        "the batch that now fits reaches the ridge",
        "a pass took the least time before, and more examples take no longer until the device is full",
        "seconds an example, with the batch that fits",
    ),
    ("checkpoint and grow", "-"): (
        "a device that was full is not faster with more examples",
        "each example needs its passes, and one more forward pass now",
        "seconds an example, with the batch that fits",
    ),
    ("offload", "0"): (
        "copies that overlap passes were charged in full",
        "the copy engines work while the passes run",
        "of a pass and the copy that overlaps it, the longer one counts",
    ),
    ("offload", "-"): (
        "copies that take longer than the passes were taken for free",
        "a pass cannot end before the copy that overlaps it",
        "of a pass and the copy that overlaps it, the longer one counts",
    ),
    ("empty_cache", "-"): (
        "emptying the cache takes time in each step",
        "the driver must provide the same segments again",
        "add it to the step",
    ),
    ("empty_cache", "0"): (
        "emptying the cache takes less than 1 % here",
        "the step is long",
        "compare seconds an example",
    ),
}
