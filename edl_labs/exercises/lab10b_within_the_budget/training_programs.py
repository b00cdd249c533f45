"""single and scaled: training programs on one GPU and on several, judged by what they compute and by their time."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab10b_within_the_budget.training_evidence import (
    evidence,
    public_facts,
    replayed_training,
    require_training,
    slow_cause,
)
from edl_labs.units import byte_count, byte_rate, counted, seconds
from edl_labs.virtual.budget import TrainingJob, lower_bound

SINGLE, SCALED = 0.90, 0.87  # efficiencies, promised in the lab's text; the reference has 0.9 and more in every draw


class _Training(Exercise):
    """A program that trains a job, from what it records to the sentence about it."""

    answer_form: ClassVar[Any] = {"programs": ""}
    asked = ""
    wanted = 0.0

    def probe(self, student: Any, given: Any) -> Any:
        return evidence(TrainingJob.from_dict(given), getattr(student, self.asked))

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """What freed memory that is used again means."""
        if error != "AttributeError":
            return None
        why = (
            "your code raised AttributeError; backward(0, ...) returns None, and the trainer has only the "
            "calls in the table"
        )
        return Wrong("your code uses an attribute that does not exist", why=why, next="check what each call returns")

    def public_want(self, case: Any, want: Any) -> Any:
        """The losses: the program would be the answer."""
        return public_facts(want, TrainingJob.from_dict(case))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        job = TrainingJob.from_dict(case)
        run = replayed_training(got["programs"], job)
        require_training(run, job, public_facts(want, job)["losses"])
        if run.efficiency < self.wanted:
            raise slow_cause(run, job, self.wanted)

    def format_case(self, case: Any) -> str:
        """The job in words."""
        job = TrainingJob.from_dict(case)
        unit_s = sum(job.forward_s) + sum(job.backward_s)
        links = f", links of {byte_rate(job.link_byte_per_s)}" if job.ranks > 1 else ""
        return (
            f"{counted(job.ranks, 'GPU')} with {byte_count(job.memory_bytes)}{links}: {job.steps} steps of "
            f"{job.share} units, {job.layers} layers; a unit takes {seconds(job.decode_s)} to decode, "
            f"{seconds(unit_s)} for its passes.\n"
            f"  Lower bound: {lower_bound(job)}"
        )


@exercise("single", timeout_s=120.0)
class Single(_Training):
    """A training job on one GPU in its memory, near the lower bound of its time.

    `train_on_one(trainer)` issues it. The evidence is the program that it records.
    """

    answers = "all"

    asked, wanted = "train_on_one", SINGLE


@exercise("scaled", timeout_s=150.0)
class Scaled(_Training):
    """The same on several GPUs, whose gradients are summed while backward passes run.

    `train_on_many(trainer)` runs on every GPU. The evidence is the program of each.
    """

    answers = "all"

    asked, wanted = "train_on_many", SCALED
