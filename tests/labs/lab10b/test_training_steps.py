"""What a leaderboard keeps of a training run: steps that fill its time, what kernels waited for, and bounded data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.spec import MOST_KEPT_BYTES, kept_timelines
from edl_labs.exercises.cluster_programs import written_programs
from edl_labs.exercises.lab10b_within_the_budget.budget_scores import rented
from edl_labs.exercises.lab10b_within_the_budget.judge.drawn_training_jobs import budgets, drawn_job
from edl_labs.exercises.lab10b_within_the_budget.judge.training_genomes import (
    best_genome,
    drawn_genome,
    naive_genome,
    program_of,
)
from edl_labs.virtual.budget import (
    StepTime,
    TrainingSteps,
    gap_parts,
    record_training,
    replay_training,
    run_training,
    training_steps,
)
from edl_labs.virtual.budget.training_steps import MOST_BARS
from edl_labs.virtual.errors import ProgramChanged, ReplayError
from tests.labs.lab10b.test_lower_bound import small_job
from tests.labs.lab10b.test_training_budget import plain

CASES = budgets(np.random.default_rng(3))
SCORE = next(one for one in load_lab("lab10b_within_the_budget") if one.name == "score")


def evidence(case, gpus, genome_of):
    job = rented(case, gpus)
    return {"gpus": gpus, "programs": written_programs(record_training(job, program_of(genome_of(job))))}


@pytest.mark.parametrize("seed", range(6))
def test_steps_fill_the_run_and_each_is_its_kernels_and_what_they_waited_for(seed):
    rng = np.random.default_rng(seed)
    job = drawn_job(rng, ranks=(1, 2, 4)[seed % 3], steps=3)
    run = run_training(job, program_of(drawn_genome(job, rng)))
    kept = training_steps(run, job)

    assert job.steps == len(kept.steps)
    assert run.makespan_s == pytest.approx(kept.makespan_s, rel=1e-12)
    assert [one.duration_s for one in kept.steps] == pytest.approx([sum(one.parts().values()) for one in kept.steps])
    kernels_s = sum(span.end_s - span.start_s for span in kept.timeline.spans if span.kind == "kernel")
    assert kernels_s == pytest.approx(sum(one.kernels_s for one in kept.steps), abs=1e-6)  # bars have nanoseconds


def test_what_kernels_waited_for_is_what_it_is_by_hand():
    """Two units: 4 ms to load and convert, 16.0015 ms to copy 8 kB pageable; a sum of 2 x (0.1 + 0.3) ms."""
    job = small_job(ranks=2)
    first, second = training_steps(run_training(job, lambda trainer: plain(trainer, cuts=2)), job).steps

    assert (4e-3, 16.0015e-3, 0.8e-3, 0.0) == pytest.approx(
        (first.host_s, first.copy_s, first.sum_s, first.others_s), abs=1e-9
    )
    # The next units are loaded while kernels run; their copy is behind them on the one stream. Losses: 5.5 us.
    assert (0.0, 16.007e-3, 0.8e-3) == pytest.approx((second.host_s, second.copy_s, second.sum_s), abs=1e-9)


def test_a_gpu_that_comes_late_to_a_sum_is_what_the_first_one_waits_for():
    job = small_job(ranks=2)

    def late(trainer):
        for step in range(trainer.steps):
            for _ in range(3 if trainer.rank else 0):
                trainer.load(step, 0, 2)  # 4 ms each, for nothing
            x = trainer.to_device(trainer.load(step, 0, 2))
            held = [x]
            for i in range(trainer.layers):
                held.append(trainer.forward(i, held[-1]))
            gradient = trainer.loss(step, held[-1], x)
            for i in reversed(range(trainer.layers)):
                gradient = trainer.backward(i, held[i], gradient)
            trainer.all_reduce()
            trainer.update()
        trainer.read_losses()

    first = training_steps(run_training(job, late), job).steps[0]

    assert 12e-3 == pytest.approx(first.others_s, abs=1e-9)
    assert 0.8e-3 == pytest.approx(first.sum_s, abs=1e-9)


def test_kept_data_are_plain_small_and_read_back_alike():
    job = small_job(ranks=2)
    kept = training_steps(run_training(job, plain), job)
    again = TrainingSteps.from_plain(json.loads(json.dumps(kept.to_plain())))

    assert kept.to_plain() == again.to_plain()
    assert kept.steps == again.steps
    assert ("host", "kernels", "copies in", "copies out", "sums") == again.timeline.rows
    few = training_steps(run_training(job, plain), job, most_bars=10)
    assert (10, len(kept.timeline.spans) - 10) == (len(few.timeline.spans), few.left_out)
    assert few.steps == kept.steps


def test_a_program_that_names_its_sums_otherwise_is_refused():
    job = small_job(ranks=2)
    programs = record_training(job, plain)
    for program in programs:
        for entry in program:
            if entry["op"] == "all_reduce":
                entry["name"] = "<b>me</b>"

    with pytest.raises(ProgramChanged, match="the program was changed"):
        replay_training(programs, job)


GOOD = {"gpus": 1, "steps": [[1.0, 0.5, 0.5, 0.0, 0.0, 0.0]], "bars": [["k", "forward 0", 0, 10]], "left_out": 0}


@pytest.mark.parametrize(
    "change",
    [
        None,
        {"gpus": 0},
        {"steps": []},
        {"steps": [[float("nan"), 0.5, 0.5, 0.0, 0.0, 0.0]]},
        {"steps": [[1.0, 0.5]]},
        {"bars": [["z", "forward 0", 0, 10]]},
        {"bars": [["k", "f" * 41, 0, 10]]},
        {"bars": [["k", 7, 0, 10]]},
        {"bars": [["k", "forward 0", 10, 0]]},
        {"bars": [["k", "forward 0", 0, 10]] * (MOST_BARS + 1)},
        {"left_out": -1},
    ],
)
def test_what_no_judge_kept_is_refused(change):
    assert 1 == len(TrainingSteps.from_plain(GOOD).steps)
    with pytest.raises(ReplayError, match="not a saved timeline"):
        TrainingSteps.from_plain(None if change is None else {**GOOD, **change})


def test_where_two_steps_differ_is_told_by_size():
    mine, its = StepTime(0, 10, 5, copy_s=1, sum_s=3.99, host_s=0.01), StepTime(0, 6, 5, copy_s=0.5, sum_s=0.5)

    assert [("sum", pytest.approx(3.49)), ("copy", 0.5)] == list(gap_parts(mine, its).items())


@pytest.mark.slow
def test_the_score_keeps_both_runs_of_the_job_with_the_most_gpus():
    offered = [max(one["ranks"] for one in case["offers"] if one["ranks"] <= 4) for case in CASES]
    most = offered.index(4)
    want = [evidence(case, 4 if at == most else 1, best_genome) for at, case in enumerate(CASES)]
    got = [{"value": evidence(case, 2 if at == most else 1, naive_genome)} for at, case in enumerate(CASES)]
    kept = kept_timelines(SCORE.spec, CASES, got, want)
    theirs, reference = (TrainingSteps.from_plain(kept[who]) for who in ("theirs", "reference"))

    assert (2, 4) == (theirs.gpus, reference.gpus)
    assert theirs.makespan_s > reference.makespan_s
    assert len(json.dumps(kept)) < MOST_KEPT_BYTES
    assert "the job whose budget pays for the most GPUs" == kept["case"]
    assert {} == kept_timelines(SCORE.spec, CASES, [{"error": {}}] * 3, want)
