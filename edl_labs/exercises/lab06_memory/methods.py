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
            raise Wrong(
                "your function must return two signs",
                why="each of them is one of +, 0 and -",
                next="return the sign of the speed, then that of the memory",
            )
        if got[1] != want[1]:
            what, why, then = _MEMORY_SAID.get((case["method"], want[1], got[1]), _MEMORY[case["method"]])
            raise Wrong(what, why=f"{why}; your sign is {got[1]}", next=then)
        if got[0] != want[0]:
            what, why, then = _SPEED[case["method"], want[0]]
            raise Wrong(what, why=f"{why}; your sign is {got[0]}", next=then)

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return score_above_chance(fractions, chance=_COMMONEST)

    def format_case(self, case: Any) -> str:
        """The job in words."""
        job = case["job"]
        held = job["fixed_bytes"] + job["batch"] * job["example_bytes"]
        return "\n".join(
            [
                f"{case['method']}: {job['batch']} examples per step, {job['parts']} parts, a share of "
                f"{job['kept_share']} kept",
                f"  {seconds(job['example_s'])} per example, at least {seconds(job['least_s'])} per forward pass",
                f"  {seconds(job['reduce_s'])} all-reduce, {seconds(job['update_s'])} update, "
                f"{seconds(job['flush_s'])} to empty the cache",
                f"  {byte_count(held)} held, {byte_count(job['fixed_bytes'])} of it fixed, of "
                f"{byte_count(job['memory_bytes'])}; copies at {byte_count(job['copy_byte_per_s'])} per second",
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
        "your answer treats accumulation like splitting the batch",
        "its micro-batches have `batch` examples each, and a step has `parts` times as many examples",
        "which of the two builds a larger batch from micro-batches of the same size?",
    ),
    ("checkpoint and grow", "0", "-"): (
        "your answer grows the batch too far: the fixed bytes need memory too",
        "the batch may grow until everything together fills the memory, as it did before",
        "how much of the memory is left for examples?",
    ),
}
_MEMORY = {
    "split": (
        "your answer ignores that only one micro-batch is held at a time",
        "each micro-batch's backward pass frees the activations of its forward pass",
        "the activations of how many examples are held at once?",
    ),
    "accumulate": (
        "your answer ignores that the micro-batches are as large as the batch was",
        "several of them run before an update, one after the other, and each adds to the same gradients",
        "the activations of how many examples are held at once?",
    ),
    "checkpoint": (
        "your sign for the memory with a checkpoint is wrong",
        "a checkpoint keeps a share of the activations, while parameters, gradients and optimizer state stay the same",
        "add the share of the activations that is kept and the fixed bytes",
    ),
    "checkpoint and grow": (
        "your answer ignores that the larger batch uses the memory that was saved",
        "the batch grows until the memory is full",
        "compare the bytes that are held afterwards with those held before",
    ),
    "offload": (
        "your sign for the memory with offloading is wrong",
        "a share of the activations is kept on the device, and the rest is moved to the host",
        "add the share of the activations that is kept and the fixed bytes",
    ),
    "empty_cache": (
        "your answer assumes that empty_cache frees memory that is in use",
        "the held bytes belong to tensors, while the cache is memory that no tensor uses",
        "which tensors does empty_cache free?",
    ),
}
_SPEED = {
    ("split", "-"): (
        "your answer ignores that small micro-batches no longer fill the device",
        "even a pass with only a few examples takes the least time",
        "work out a pass of one micro-batch",
    ),
    ("split", "0"): (
        "your answer ignores that micro-batches that fill the device lose no time",
        "above the least time, twice as many examples take twice as long",
        "work out a pass of one micro-batch",
    ),
    ("accumulate", "+"): (
        "your answer ignores that there are fewer all-reduces",
        "gradients are exchanged and applied once for several batches",
        "compare seconds per example: all examples of a step share what is done once per step",
    ),
    ("accumulate", "0"): (
        "your answer counts a gain of less than 1 %",
        "what is done once per step takes less than 1 % of the step",
        "compare seconds per example: all examples of a step share what is done once per step",
    ),
    ("checkpoint", "-"): (
        "your answer ignores that the second forward pass takes time",
        "everything that was not kept is computed again",
        "count the time of four forward passes instead of three",
    ),
    ("checkpoint", "0"): (
        "your answer counts a second forward pass that takes less than 1 % of this step",
        "the all-reduce takes nearly all of the step",
        "compare seconds per example of the whole step, including what is done once per step",
    ),
    ("checkpoint and grow", "+"): (
        "your answer ignores that the batch that now fits fills the device better",
        "before, a pass took the least time, and more examples take no longer until the device is full",
        "compare seconds per example, with the batch that fits",
    ),
    ("checkpoint and grow", "-"): (
        "your answer ignores that a full device does not become faster with more examples",
        "each example still needs its passes, and now one more forward pass",
        "compare seconds per example, with the batch that fits",
    ),
    ("offload", "0"): (
        "your answer counts copies that overlap passes in full",
        "the copy engines work while the passes run",
        "count the longer one of a pass and the copy that overlaps it",
    ),
    ("offload", "-"): (
        "your answer counts copies that take longer than the passes as free",
        "a pass cannot end before the copy that overlaps it",
        "count the longer one of a pass and the copy that overlaps it",
    ),
    ("empty_cache", "-"): (
        "your answer ignores that emptying the cache takes time in each step",
        "the driver must provide the same segments again",
        "add that time to the step",
    ),
    ("empty_cache", "0"): (
        "your answer counts the time of emptying the cache, which is less than 1 % here",
        "the step is long",
        "compare seconds per example",
    ),
}
