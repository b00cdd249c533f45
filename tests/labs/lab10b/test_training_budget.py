"""lab10b's trainer: losses that are real and exact, faults that are named, and the programs of the notebook."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import pairwise

import numpy as np
import pytest

from edl_labs.checks import Outcome
from edl_labs.course.grade.known_sentences import sentences
from edl_labs.exercises.lab10b_within_the_budget.judge.drawn_training_jobs import drawn_job
from edl_labs.exercises.lab10b_within_the_budget.training_evidence import slow_cause
from edl_labs.virtual.budget import TrainingJob, record_training, replay_training, run_training
from edl_labs.virtual.budget.exact_net import ExactNet, outer, times
from edl_labs.virtual.errors import ReplayError, VirtualClusterError
from tests.labs.conftest import SOLUTIONS
from tests.labs.lab10b.test_lower_bound import small_job

LAB_TOML = tomllib.loads((SOLUTIONS / "lab10b_within_the_budget" / "lab.toml").read_text(encoding="utf-8"))
ANSWER = next(one["model_answer"] for one in LAB_TOML["exercise"] if one["name"] == "report")


@pytest.fixture(scope="module")
def job() -> TrainingJob:
    return drawn_job(np.random.default_rng(7), ranks=1, steps=4)


def plain(trainer, *, cuts=1, **calls):
    """A whole training, in micro-batches of `cuts` units."""
    for step in range(trainer.steps):
        for first in range(0, trainer.share, cuts):
            count = min(cuts, trainer.share - first)
            x = trainer.to_device(trainer.load(step, first, count))
            held = [x]
            for i in range(trainer.layers):
                held.append(trainer.forward(i, held[-1]))
            gradient = trainer.loss(step, held[-1], x)
            for i in reversed(range(trainer.layers)):
                gradient = trainer.backward(i, held[i], gradient)
        if trainer.ranks > 1:
            trainer.all_reduce()
        trainer.update()
    trainer.read_losses()


def test_losses_are_the_same_to_the_bit_however_the_units_are_cut_and_dealt(job):
    runs = [run_training(job, lambda trainer, cuts=cuts: plain(trainer, cuts=cuts)) for cuts in (1, 2, 5)]
    spread = [run_training(small_job(ranks=ranks), plain) for ranks in (1, 2, 4)]

    assert 1 == len({run.losses for run in runs})
    assert 1 == len({run.losses for run in spread})
    assert [()] * 6 == [run.faults for run in [*runs, *spread]]


def test_losses_fall_and_are_those_of_a_net_computed_by_hand():
    run = run_training(small_job(units=1, steps=1, elements=(4,), outputs=(4,), forward_s=(1,), backward_s=(1,)), plain)
    net = ExactNet(1, 1)
    inputs, targets = net.unit(0, 0)
    by_hand = np.square(inputs @ net.weights()[0] - targets).mean() / 2
    long = run_training(small_job(steps=12), plain)

    assert by_hand == pytest.approx(run.losses[0], rel=1e-6)
    assert long.losses[-1] < 0.7 * long.losses[0]


def test_gradients_are_the_derivatives_of_the_loss():
    net = ExactNet(3, 1)
    inputs, targets = net.unit(0, 0)
    weights = net.weights()[0]
    moved = weights + 1e-5 * np.outer(np.eye(6)[2], np.eye(6)[4])
    loss = [np.square(inputs @ one - targets).sum() / 2 for one in (weights, moved)]

    gradient = outer(inputs, times(inputs, weights) - targets)[2, 4]
    assert (loss[1] - loss[0]) / 1e-5 == pytest.approx(gradient, rel=1e-2, abs=1e-4)


def test_a_sum_is_exact_in_any_order():
    rng = np.random.default_rng(1)
    rows, others = rng.random((40, 6)), rng.random((40, 6))
    order = rng.permutation(40)

    assert (outer(rows, others) == outer(rows[order], others[order])).all()
    assert (outer(rows[:7], others[:7]) + outer(rows[7:], others[7:]) == outer(rows, others)).all()


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (lambda program: [e for e in program if e["op"] != "host_work"], "that a Trainer never records"),
        (lambda program: [{**e, "duration_s": 0.0} if e["op"] == "launch" else e for e in program], "that a Trainer"),
        (lambda program: [{**e, "duration_s": 0.0} if e["op"] == "copy" else e for e in program], "that a Trainer"),
        (lambda program: [{**e, "name": "gift"} if e.get("name") == "loss" else e for e in program], "was changed"),
        (lambda program: [{**e, "name": e["name"].replace("data 1", "data 0")} if "name" in e else e for e in program],
         None),
        (lambda program: program[1:], "is not possible|did not create"),
        (lambda program: [7], "not a dict"),
    ],
)  # fmt: skip
def test_a_program_that_was_tampered_with_is_refused_or_told(edit, what):
    programs = json.loads(json.dumps(record_training(small_job(), plain)))
    edited = [edit(program) for program in programs]
    if what is None:
        assert replay_training(edited, small_job()).faults
        return
    with pytest.raises(ReplayError, match=what):
        replay_training(edited, small_job())


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda t: t.load(9, 0, 1), "step is 9"),
        (lambda t: t.load(0, 3, 2), "count is 2"),
        (lambda t: t.load(0, 0, 1, dtype="int4"), "dtype is"),
        (lambda t: t.forward(0, t.load(0, 0, 1).tensor), "expected the input of layer 0"),
        (lambda t: t.forward(1, t.to_device(t.load(0, 0, 1))), "expected the input of layer 1"),
        (lambda t: t.update(1, 1), "stop is 1"),
        (lambda t: t.update(True), "first is True"),
    ],
)
def test_calls_that_cannot_be_are_named(call, what):
    with pytest.raises(VirtualClusterError, match=what):
        record_training(small_job(), call)


def test_whole_numbers_of_numpy_are_whole_numbers():
    job = small_job()
    recorded = record_training(job, lambda t: plain(t, cuts=np.int64(2)))

    assert record_training(job, lambda t: plain(t, cuts=2)) == json.loads(json.dumps(recorded))
    assert job.on(np.int64(2)) == job.on(2)


def test_the_rows_of_a_run_have_its_loads_waits_and_copies_in_time():
    job = small_job(ranks=2)
    rows = run_training(job, plain).rows()
    loads = [span for span in rows.spans if span.kind == "load"]
    copies = [span for span in rows.spans if span.row == "copies"]

    assert ("host", "compute", "copies", "sums") == rows.rows
    assert len(loads) == job.steps * job.share
    assert sum(one.end_s - one.start_s for one in loads) == pytest.approx(len(loads) * (job.decode_s + job.convert_s))
    # The first copy begins when the first load has ended, each later one no sooner, and the host waits for all.
    assert copies[0].start_s == pytest.approx(loads[0].end_s)
    for load, copy in zip(loads, copies, strict=False):
        assert copy.start_s > load.end_s - 1e-9
        assert any(one.kind == "wait" and one.end_s == pytest.approx(copy.end_s) for one in rows.spans)
    assert any(one.kind == "comm" for one in rows.spans)


def test_a_job_that_cannot_be_is_named():
    with pytest.raises(VirtualClusterError, match="a divisor of 4, the number of units"):
        small_job(ranks=3)
    with pytest.raises(VirtualClusterError, match="does not describe a training job"):
        TrainingJob.from_dict({"steps": 1})


def test_the_peak_is_what_the_job_says_where_everything_is_freed(solution, job):
    run = run_training(job, solution["train_on_one"])
    fits = max(count for count in range(1, job.share + 1) if job.peak_bytes(count) <= job.memory_bytes)

    assert job.peak_bytes(fits) == run.peak_bytes
    assert run.peak_bytes <= job.memory_bytes


def test_the_notebooks_job_has_its_naive_program_below_a_fifth_of_light(solution):
    job = solution["JOB"]

    assert run_training(job, solution["naive"]).efficiency < 0.2
    assert run_training(job, solution["train_on_one"]).efficiency > 0.9
    assert run_training(job.on(4), solution["train_on_many"]).efficiency > 0.87


def test_a_score_has_an_entry_beside_its_mark_that_travels_as_plain_data(judged):
    outcome = judged("score")

    assert 0.88 < outcome.entry["efficiency"] <= 1.0
    assert {"efficiency", "peak_bytes", "money", "makespan_s 0", "makespan_s 1", "makespan_s 2"} == set(outcome.entry)
    assert outcome.entry == Outcome.from_json(json.loads(json.dumps(outcome.to_json()))).entry
    assert {} == judged("single").entry


@pytest.mark.slow
def test_the_notebook_runs_unsolved_and_solved(run_all, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for solved in (False, True):
        names = run_all(solved=solved, small=[("step_count = 4", "step_count = 2")])

        assert names["found"].efficiency < 0.2


def test_the_report_says_what_the_two_tables_say(solution):
    """Mends in one order and the other, then one to four GPUs: the figures that the model answer quotes."""
    job, mended, many = solution["JOB"], solution["mended"], solution["train_on_many"]
    kinds = {"dtype": "uint8", "fused": True, "pinned": True, "whole": True, "waits": False}

    def gains_ms(order: list[str]) -> dict[str, str]:
        made = [dict.fromkeys(order[:count]) for count in range(len(order) + 1)]
        times = [run_training(job, lambda t, m=m: mended(t, **{one: kinds[one] for one in m})).makespan_s for m in made]
        return {name: f"{1e3 * (a - b):.0f}" for name, (a, b) in zip(order, pairwise(times), strict=True)}

    forth, back = gains_ms([*kinds]), gains_ms([*reversed(kinds)])
    runs = [run_training(job.on(ranks), many) for ranks in (1, 2, 3, 4)]
    saved = [f"{1e3 * (a.makespan_s - b.makespan_s):.0f}" for a, b in pairwise(runs[1:])]

    said = [*(forth[one] for one in ("dtype", "fused", "waits")), *(back[one] for one in ("waits", "fused", "dtype"))]
    said += [f"{1e3 * one.makespan_s:.1f}" for one in runs[:2]] + [f"{runs[at].money:.3f}" for at in (0, 1, 3)] + saved

    quoted = set(re.findall(r"\d+(?:\.\d+)?", ANSWER)) - {"529", "8", "32"}  # the naive run, uint8, fp32
    assert quoted | {"8"} == set(said)


def test_why_a_run_is_slow_is_told_of_secret_cases_too(solution):
    """What stands whole in the source may be said; what is filled into it would be left out."""
    job, known = solution["JOB"], sentences("lab10b_within_the_budget")
    programs = (solution["naive"], lambda trainer: solution["mended"](trainer, dtype="uint8", fused=True))
    causes = [slow_cause(run_training(job, one), job, 0.9).what for one in programs]

    assert ["your run is slow: it converts data to fp32 on the host"] == causes[:1]
    assert causes == [known.told(one) for one in causes]
