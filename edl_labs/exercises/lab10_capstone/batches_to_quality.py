"""time_to_quality: the batch with which training is over first, and the fewest GPUs that end by a deadline."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab10_capstone.quality_slips import BATCHES, GPUS, STEPS
from edl_labs.exercises.slip_digests import digest
from edl_labs.units import byte_rate, counted, flop_rate, seconds


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
            f"at least {job['steps']} steps, critical batch size {job['critical_batch']}; per sample "
            f"{job['sample_flop']:.4g} FLOP and {job['sample_bytes']:.4g} B; weights {job['weight_bytes']:.4g} B; "
            f"{flop_rate(machine['flop_per_s'])}, {byte_rate(machine['memory_byte_per_s'])}, "
            f"overhead {seconds(machine['overhead_s'])} per step, {seconds(machine['sync_s'])} for the sum, "
            f"{machine['most_samples']} samples fit on a GPU, at most {machine['most_gpus']} GPUs; "
            f"batches {asked} GPUs; best batches on {', '.join(map(str, case['gpus']))} GPUs; "
            f"deadlines {', '.join(map(seconds, case['deadlines_s']))}"
        )


def _require_form(got: Any) -> None:
    for said in (*got["step_s"], *got["quality_s"]):
        if type(said) not in (int, float) or not math.isfinite(said):
            why = f"got {str(said)[:60]}"
            raise Wrong("one of your times is not a number of seconds", why=why, next="return seconds, as a float")
    for name, nothing in (("best", False), ("fewest", True)):
        for said in got[name]:
            if said is None and nothing:
                continue
            if type(said) not in (int, float) or not math.isfinite(said) or said != int(said):
                what = "one of your numbers of GPUs" if nothing else "one of your batches"
                why = f"got {str(said)[:60]}"
                raise Wrong(f"{what} is not a whole number", why=why, next="try only whole numbers, one by one")


def _step_symptom(case: Any, batch: int, gpus: int, said: float, right: float) -> Wrong:
    why = f"a batch of {batch} on {counted(gpus, 'GPU')}: got {seconds(said)}, expected {seconds(right)}"
    fitting = [what for what, value in _step_slips(case, batch, gpus, right).items() if close(said, value)]
    if len(fitting) == 1:
        return Wrong(fitting[0], why=why, next=STEPS[fitting[0]])
    then = "take the longer of one GPU's times for computing and for moving; add the overhead and the wait for the sum"
    return Wrong("your time of a step is wrong", why=why, next=then)


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
    return Wrong(
        fitting[0], why="this mistake gives exactly your times, for all steps in all cases", next=STEPS[fitting[0]]
    )


def _steps_symptom(case: Any, batch: int, gpus: int, said: float, right: float) -> Wrong:
    job = case["job"]
    least, critical = job["steps"], job["critical_batch"]
    why = f"a batch of {batch} on {counted(gpus, 'GPU')}: got the time of {said:.9g} steps, expected {right:.9g} steps"
    slips = (
        (
            "your function inverts the quotient of batch and critical batch",
            1 + batch / critical,
            "check that a larger batch needs fewer steps in your function",
        ),
        (
            "your function leaves out the minimum number of steps",
            critical / batch,
            "use S (1 + B_c / B), including the 1",
        ),
        (
            "your number of steps does not depend on the batch",
            1.0,
            "use the law S (1 + B_c / B): a small batch needs more steps",
        ),
        (
            "your function evaluates the law with the samples of one GPU",
            1 + critical * gpus / batch,
            "use the batch of all GPUs for B",
        ),
    )
    for what, factor, then in slips:
        if close(said, least * factor):
            return Wrong(what, why=why, next=then)
    if close(said, math.ceil(right)) or close(said, math.floor(right)):
        return Wrong(
            "your function rounds the number of steps",
            why=why,
            next="do not round: the law gives an average number of steps",
        )
    return Wrong(
        "your number of training steps is wrong", why=why, next="multiply S (1 + B_c / B) by the result of step_s()"
    )


def _batch_symptom(case: Any, gpus: int, said: Any, right: Any) -> Wrong:
    machine = case["machine"]
    why = f"on {counted(gpus, 'GPU')}, got a batch of {said:g}, but training ends sooner with {right}"
    if said % gpus:
        return Wrong("your batch is not a multiple of the number of GPUs", why=why, next="try only multiples of `gpus`")
    if said > gpus * machine["most_samples"]:
        then = "allow at most machine['most_samples'] samples on each GPU"
        return Wrong("your batch does not fit", why=why, next=then)
    then = "call quality_s() for each batch that fits, and take the batch with the shortest time"
    return Wrong("training ends sooner with a different batch", why=why, next=then)


def _batches_left_out(rows: list[Any]) -> Wrong | None:
    """What all best batches say of those that were tried; or None. Rows: case, GPUs, two batches."""
    if all(said * gpus == right for _, gpus, said, right in rows):
        why = "in all cases your answer is one GPU's share of the right batch"
        what = "your function returned the samples of one GPU, not the batch"
        return Wrong(what, why=why, next="multiply by `gpus`")
    off = [(case["machine"]["most_samples"], *row) for case, *row in rows if row[1] != row[2]]
    if all(right == gpus * most and said == right - gpus for most, gpus, said, right in off):
        why = "in every case where the largest batch is the best one, your answer is the next smaller batch"
        then = "include the largest batch: range(a, b) ends before b"
        return Wrong("your function does not try the largest batch that fits", why=why, next=then)
    if all(said == (2 * gpus if right == gpus else right) for _, gpus, said, right in rows):
        why = "in every case where one sample per GPU is best, your answer has two samples per GPU"
        return Wrong("your function does not try one sample per GPU", why=why, next="begin with a batch of `gpus`")
    shares = [said / gpus for _, gpus, said, _ in rows]
    if all(one >= 1 and math.log2(one).is_integer() for one in shares):
        why = "in all cases, your number of samples per GPU is a power of two"
        return Wrong(
            "your function chooses only powers of two as samples per GPU", why=why, next="try every number that fits"
        )
    return None


def _fewest_symptom(case: Any, deadline_s: float, said: Any, right: Any) -> Wrong:
    why = f"for a deadline of {seconds(deadline_s)}: got {said}, expected {right}"
    if right is None:
        then = "return None if no number up to machine['most_gpus'] meets the deadline: more GPUs do not always help"
        what = "your function returned a number, but no number of GPUs meets the deadline"
        return Wrong(what, why=why, next=then)
    if said is None:
        return Wrong(
            "your function returned None, but some number of GPUs meets the deadline",
            why=why,
            next=f"what does quality_s() return for {counted(right, 'GPU')} with the best batch for that number?",
        )
    if said < right:
        then = "what does quality_s() return for your number of GPUs with the best batch for that number?"
        return Wrong("your number of GPUs misses the deadline", why=why, next=then)
    then = "try every number from 1 on, each with its best batch: one more GPU does not always make training faster"
    return Wrong("fewer GPUs would also meet the deadline", why=why, next=then)
