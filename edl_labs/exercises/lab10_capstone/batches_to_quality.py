"""time_to_quality: the batch with which training is over first, and the fewest GPUs that end by a deadline."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab10_capstone.quality_slips import BATCHES, GPUS, STEPS
from edl_labs.exercises.slip_digests import digest
from edl_labs.units import byte_rate, flop_rate, seconds


@exercise("time_to_quality")
class TimeToQuality(Exercise):
    """Seconds of a step and of a training by its batch, the batch that ends first, and the GPUs that a deadline needs.

    `step_s(job, machine, batch, gpus)`, `quality_s(job, machine, batch, gpus)`, `best_batch(job, machine, gpus)` and
    `fewest_gpus(job, machine, deadline_s)`.
    """

    answers = "all"

    skip_type_check = True

    def probe(self, student: Any, given: Any) -> Any:
        def asked() -> tuple[dict[str, Any], dict[str, Any]]:
            return {**given["job"]}, {**given["machine"]}

        return {
            "step_s": [student.step_s(*asked(), batch, gpus) for batch, gpus in given["asked"]],
            "quality_s": [student.quality_s(*asked(), batch, gpus) for batch, gpus in given["asked"]],
            "best": [student.best_batch(*asked(), gpus) for gpus in given["gpus"]],
            "fewest": [student.fewest_gpus(*asked(), deadline_s) for deadline_s in given["deadlines_s"]],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _require_form(got)
        for (batch, gpus), said, right in zip(case["asked"], got["step_s"], want["step_s"], strict=True):
            if not close(said, right):
                raise _step_symptom(case, batch, gpus, said, right)
        rows = zip(case["asked"], got["quality_s"], want["quality_s"], want["step_s"], strict=True)
        for (batch, gpus), said, right, step_s in rows:
            if not close(said, right):
                raise _steps_symptom(case, batch, gpus, said / step_s, right / step_s)
        for gpus, said, right in zip(case["gpus"], got["best"], want["best"], strict=True):
            if said != right:
                raise _batch_symptom(case, gpus, said, right)
        for deadline_s, said, right in zip(case["deadlines_s"], got["fewest"], want["fewest"], strict=True):
            if said != right:
                raise _fewest_symptom(case, deadline_s, said, right)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Another rule for the batch, or for the GPUs, where it gives the answers to all cases."""
        for one in got:
            _require_form(one)
        timed = all(
            close(said, right)
            for one, other in zip(got, want, strict=True)
            for name in ("step_s", "quality_s")
            for said, right in zip(one[name], other[name], strict=True)
        )
        if not timed:
            return _one_slip_of_all_steps(cases, got, want)
        for kind, table in (("best", BATCHES), ("fewest", GPUS)):
            if [one[kind] for one in got] == [one[kind] for one in want]:
                continue
            for slip, (what, why, then) in table.items():
                if all(digest(one[kind]) == case["slips"][kind][slip] for case, one in zip(cases, got, strict=True)):
                    return Wrong(what, why=why, next=then)
            rows = [
                (case, *row)
                for case, one, other in zip(cases, got, want, strict=True)
                for row in zip(case["gpus" if kind == "best" else "deadlines_s"], one[kind], other[kind], strict=True)
            ]
            return _batches_left_out(rows) if kind == "best" else None
        return None

    def format_answer(self, case: Any, got: Any) -> str:
        """Batches and GPUs."""
        return f"best batches {', '.join(map(str, got['best']))}; fewest GPUs {', '.join(map(str, got['fewest']))}"

    def format_case(self, case: Any) -> str:
        """The job, the machine and what is asked."""
        job, machine = case["job"], case["machine"]
        asked = ", ".join(f"{batch} on {gpus}" for batch, gpus in case["asked"])
        return (
            f"{job['steps']} steps at least, critical batch {job['critical_batch']}; a sample: "
            f"{job['sample_flop']:.4g} FLOP, {job['sample_bytes']:.4g} B; weights {job['weight_bytes']:.4g} B; "
            f"{flop_rate(machine['flop_per_s'])}, {byte_rate(machine['memory_byte_per_s'])}, "
            f"{seconds(machine['overhead_s'])} a step, {seconds(machine['sync_s'])} to sum, "
            f"{machine['most_samples']} samples fit a GPU, at most {machine['most_gpus']} GPUs; batches {asked}; the "
            f"best on {', '.join(map(str, case['gpus']))}; deadlines {', '.join(map(seconds, case['deadlines_s']))}"
        )


def _require_form(got: Any) -> None:
    for said in (*got["step_s"], *got["quality_s"]):
        if type(said) not in (int, float) or not math.isfinite(said):
            raise Wrong("a time is not a number of seconds", why=str(said)[:60], next="return seconds, as a float")
    for name, nothing in (("best", False), ("fewest", True)):
        for said in got[name]:
            if said is None and nothing:
                continue
            if type(said) not in (int, float) or not math.isfinite(said) or said != int(said):
                what = "a number of GPUs" if nothing else "a batch"
                raise Wrong(f"{what} is not a whole number", why=str(said)[:60], next="try whole numbers, one by one")


def _step_symptom(case: Any, batch: int, gpus: int, said: float, right: float) -> Wrong:
    why = f"a batch of {batch} on {gpus} GPUs: {seconds(said)} came back, {seconds(right)} is right"
    fitting = [what for what, value in _step_slips(case, batch, gpus, right).items() if close(said, value)]
    if len(fitting) == 1:
        return Wrong(fitting[0], why=why, next=STEPS[fitting[0]])
    then = "the longer of computing and moving a GPU's samples, the overhead, and the sum over GPUs"
    return Wrong("the time of a step is wrong", why=why, next=then)


def _step_slips(case: Any, batch: int, gpus: int, right: float) -> dict[str, float]:
    """Seconds of a step by each mistake in `STEPS`."""
    job, machine = case["job"], case["machine"]
    one = batch / gpus
    computes = one * job["sample_flop"] / machine["flop_per_s"]
    weights = job["weight_bytes"] / machine["memory_byte_per_s"]
    samples = one * job["sample_bytes"] / machine["memory_byte_per_s"]
    sync = machine["sync_s"]
    rest = right - max(computes, weights + samples)
    values = (
        computes + weights + samples + rest,
        min(computes, weights + samples) + rest,
        right - machine["overhead_s"],
        right - sync * (gpus > 1),
        right + sync * (gpus == 1),
        max(computes, one * weights + samples) + rest,
        max(gpus * computes, weights + gpus * samples) + rest,
        max(computes, weights / gpus + samples) + rest,
        max(computes, weights) + rest,
        max(computes, samples) + rest,
    )
    return dict(zip(STEPS, values, strict=True))


def _one_slip_of_all_steps(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The one mistake that gives the seconds of all steps; None where two do, or none."""
    rows = [
        (_step_slips(case, batch, gpus, right), said)
        for case, one, other in zip(cases, got, want, strict=True)
        for (batch, gpus), said, right in zip(case["asked"], one["step_s"], other["step_s"], strict=True)
    ]
    fitting = [what for what in STEPS if all(close(said, values[what]) for values, said in rows)]
    if len(fitting) != 1:
        return None
    return Wrong(fitting[0], why="all steps in all cases take what that gives", next=STEPS[fitting[0]])


def _steps_symptom(case: Any, batch: int, gpus: int, said: float, right: float) -> Wrong:
    job = case["job"]
    least, critical = job["steps"], job["critical_batch"]
    why = f"a batch of {batch} on {gpus} GPUs: {said:.9g} of your steps came back, {right:.9g} are right"
    slips = (
        (
            "the ratio of batch and critical batch is inverted",
            1 + batch / critical,
            "a larger batch: fewer steps",
        ),
        ("the least number of steps is left out", critical / batch, "steps = S (1 + B_c / B): mind the 1"),
        ("the number of steps does not depend on the batch", 1.0, "a small batch needs more of them"),
        (
            "the law was evaluated with one GPU's samples",
            1 + critical * gpus / batch,
            "B is the batch of a step, on all GPUs",
        ),
    )
    for what, factor, then in slips:
        if close(said, least * factor):
            return Wrong(what, why=why, next=then)
    if close(said, math.ceil(right)) or close(said, math.floor(right)):
        return Wrong("steps are rounded", why=why, next="leave them as they are: the law is an average")
    return Wrong("the number of training steps is wrong", why=why, next="S (1 + B_c / B), times step_s")


def _batch_symptom(case: Any, gpus: int, said: Any, right: Any) -> Wrong:
    machine = case["machine"]
    why = f"on {gpus} GPUs {said:g} came back, and {right} ends first"
    if said % gpus:
        return Wrong("the batch cannot be shared equally", why=why, next="only multiples of `gpus` are batches")
    if said > gpus * machine["most_samples"]:
        then = "machine['most_samples'] is the most that one GPU holds"
        return Wrong("the batch does not fit", why=why, next=then)
    return Wrong("another batch ends first", why=why, next="quality_s of each batch that fits; take the least")


def _batches_left_out(rows: list[Any]) -> Wrong | None:
    """What all best batches say of those that were tried; or None. Rows: case, GPUs, two batches."""
    if all(said * gpus == right for _, gpus, said, right in rows):
        why = "in all cases it is a GPU's share of the batch that ends first"
        return Wrong("the samples of one GPU came back, not the batch", why=why, next="all GPUs together: times gpus")
    off = [(case["machine"]["most_samples"], *row) for case, *row in rows if row[1] != row[2]]
    if all(right == gpus * most and said == right - gpus for most, gpus, said, right in off):
        why = "where it is the best, the one before it came back in all cases"
        return Wrong("the largest batch that fits is not tried", why=why, next="range(a, b) ends before b")
    if all(said == (2 * gpus if right == gpus else right) for _, gpus, said, right in rows):
        why = "where it is the best, two samples a GPU came back in all cases"
        return Wrong("one sample a GPU is not tried", why=why, next="begin with a batch of `gpus`")
    shares = [said / gpus for _, gpus, said, _ in rows]
    if all(one >= 1 and math.log2(one).is_integer() for one in shares):
        why = "in all cases the samples per GPU in your answer are a power of two"
        return Wrong("a batch need not be a power of two", why=why, next="try every number of samples that fits")
    return None


def _fewest_symptom(case: Any, deadline_s: float, said: Any, right: Any) -> Wrong:
    why = f"by {seconds(deadline_s)}: {said} came back, {right} is right"
    if right is None:
        then = "more GPUs mean more to sum, and batches that teach less: it may never be in time; then return None"
        return Wrong("no number of GPUs is in time", why=why, next=then)
    if said is None:
        return Wrong(
            "some number of GPUs is in time",
            why=why,
            next=f"what does quality_s say of {right} GPUs, with the best batch for so many?",
        )
    if said < right:
        then = "what does quality_s say of your answer, with the best batch for it?"
        return Wrong("so few GPUs are not in time", why=why, next=then)
    then = "try every number from 1 on, each with its best batch: one GPU more is not always faster"
    return Wrong("fewer GPUs are in time, too", why=why, next=then)
