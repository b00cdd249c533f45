"""planted: each mend counts for itself; shortcuts, other results and forged programs do not."""

from __future__ import annotations

import pytest

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_facts import facts
from edl_labs.checks.spec import given_halves
from edl_labs.exercises.lab05_profiling.planted_faults import MENDS
from tests.sampling import few

MENDED = {
    "reading": {"cached": True},
    "copying": {"pinned": True},
    "host reads": {"late": True},
    "optimizer": {"fused": True},
    "memory": {"trims": False},
    "layout": {"converted": True},
}


def script(*, cached=False, pinned=False, late=False, fused=False, trims=True, converted=False):
    """The planted script with some of its inefficiencies mended."""

    def train(job):
        if converted:
            job.to_channels_last()
        losses, kept = [], {}
        for number in job.order:
            batch = kept.get(number) or job.read(number, pin_memory=pinned)
            if cached:
                kept[number] = batch
            loss = job.forward(job.to_device(batch, non_blocking=pinned))
            losses.append(loss if late else job.item(loss))
            job.backward(loss)
            if fused:
                job.update_all()
            else:
                for name in job.parameters:
                    job.update(name)
            if trims:
                job.empty_cache()
        return [job.item(loss) for loss in losses] if late else losses

    return train


@pytest.mark.parametrize("mend", few(MENDS, quick=3))
def test_one_mend_is_worth_a_sixth(mend, judged):
    outcome = judged("planted", train=script(**MENDED[mend]))

    assert pytest.approx(1 / 6, abs=1e-3) == outcome.points
    assert "partly" == outcome.state


def test_all_six_mends_pass_with_batches_cached_on_the_host(judged):
    options = {key: value for mend in MENDED.values() for key, value in mend.items()}

    assert "passed" == judged("planted", train=script(**options)).state


def test_the_planted_script_itself_earns_nothing(judged):
    assert 0 == judged("planted", train=script()).points


@pytest.mark.slow
def test_pinned_memory_alone_does_not_make_a_copy_asynchronous(judged):
    def half(job):
        losses = []
        for number in job.order:
            loss = job.forward(job.to_device(job.read(number, pin_memory=True)))
            losses.append(job.item(loss))
            job.backward(loss)
            for name in job.parameters:
                job.update(name)
            job.empty_cache()
        return losses

    assert 0 == judged("planted", train=half).points


def test_losses_from_elsewhere_need_the_work_on_this_machine(judged):
    def elsewhere(job):
        twin = type(job)(type(job.gpu)(job.gpu.machine), job.plan)
        return script(late=True)(twin)

    assert "your program does not contain the same training" == judged("planted", train=elsewhere).what


def test_losses_of_a_rehearsal_beside_the_mended_program_are_not_its_own(judged, solution):
    def rehearsed(job):
        losses = script()(type(job)(type(job.gpu)(job.gpu.machine), job.plan))
        item, job.item = job.item, lambda loss: loss
        solution["train"](job)
        job.item = item
        return losses

    assert ("your function returned losses that were never read from the device") == judged(
        "planted", train=rehearsed
    ).what


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda name, given: {"reads": given["reads"][1:]} if name == "forward 0" else {}, "does not read the batch"),
        (lambda name, given: {"reads": given["reads"][:1]} if name == "forward 1" else {}, "does not read the weights"),
        (lambda name, given: {"reads": ()} if name == "update all" else {}, "does not read its gradient"),
        (lambda name, given: {"writes": ()} if name == "backward 0" else {}, "does not write the gradients"),
    ],
)
def test_bytes_are_followed_from_batches_to_updates(judged, solution, change, told):
    def cut(job):
        issue = job.gpu.launch
        job.gpu.launch = lambda name, **given: issue(name, **{**given, **change(name, given)})
        return solution["train"](job)

    outcome = judged("planted", train=cut)

    assert ("the returned losses do not come from this program", True) == (outcome.what, told in outcome.why), (
        outcome.why
    )


def test_reading_that_takes_no_time_brings_no_batch(judged, solution):
    def quick(job):
        work = job.gpu.host_work
        job.gpu.host_work = lambda spent_s, **touched: work(1e-9, **touched)
        return solution["train"](job)

    assert "the returned losses do not come from this program" == judged("planted", train=quick).what


def test_fewer_steps_of_the_optimizer_change_the_curve(judged):
    def lazy(job):
        losses = []
        for step, number in enumerate(job.order):
            losses.append(job.forward(job.to_device(job.read(number))))
            job.backward(losses[-1])
            if step % 2:
                job.update_all()
        return [job.item(loss) for loss in losses]

    assert judged("planted", train=lazy).what.startswith("the loss curve changed at step")


def test_cheaper_kernels_of_ones_own_are_no_mend(judged):
    def cheap(job):
        issue = job.gpu.launch
        job.gpu.launch = lambda name, *, duration_s, **touched: issue(name, duration_s=duration_s / 10, **touched)
        return script(late=True)(job)

    assert "your program does not contain the same training" == judged("planted", train=cheap).what


@pytest.mark.parametrize("value", few([[], [float("nan")], None, "losses", [0.0] * 10**5], quick=4))
def test_absurd_losses_earn_nothing(value, judged):
    assert 0 == judged("planted", train=lambda job: value).points


def test_losses_left_on_the_device_are_told_which_call_reads_them(judged):
    def unread(job):
        losses = []
        for number in job.order:
            losses.append(job.forward(job.to_device(job.read(number))))
            job.backward(losses[-1])
            job.update_all()
        return losses

    assert "job.item" in judged("planted", train=unread).next


@pytest.fixture
def told(exercises, solution):
    """`told(train)`: the outcome of the first public case alone."""
    cases, want = (side[:1] for side in facts("lab05_profiling").golden("planted"))
    planted = exercises["planted"]
    return lambda train: judge(
        planted, cases, collect(planted, {**solution, "train": train}, given_halves(cases)), want, points=1
    )


def mended(*, update="all", where="step", order=lambda job: job.order):
    """The mended script with other updates, or other batches."""

    def train(job):
        job.to_channels_last()
        losses = []
        ready = {n: job.to_device(job.read(n, pin_memory=True), non_blocking=True) for n in sorted(set(job.order))}
        for number in order(job):
            losses.append(job.forward(ready[number]))
            job.backward(losses[-1])
            for name in job.parameters if where == "step" and update in ("both", "each") else ():
                job.update(name)
            if where == "step" and update in ("both", "all"):
                job.update_all()
        if where == "end":
            job.update_all()
        return [job.item(loss) for loss in losses]

    return train


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"update": "both"}, "each parameter is updated twice per step, by job.update_all() and by job.update(name)"),
        ({"where": "end"}, "the weights are updated only after the last forward pass"),
        ({"where": "never"}, "the weights are never updated"),
        ({"order": lambda job: sorted(job.order)}, "but job.order has batch"),
    ],
)
def test_changed_losses_are_told_what_the_program_did(told, options, why):
    outcome = told(mended(**options))

    assert outcome.what.startswith("the loss curve changed at step")
    assert why in outcome.why


def test_a_batch_that_was_never_read_is_told(told):
    def one_short(job):
        ready = {number: job.to_device(job.read(number)) for number in range(max(job.order))}
        return [job.item(job.forward(ready[number])) for number in job.order]

    def under_another_key(job):
        ready = {f"batch {number}": job.to_device(job.read(number)) for number in set(job.order)}
        return [job.item(job.forward(ready[number])) for number in job.order]

    assert "which was never read" in told(one_short).what
    assert "was read" in told(under_another_key).why


def test_one_number_for_all_losses_is_told_by_its_kind(told):
    assert "for `losses`, expected a list or a tuple, got a number" in told(lambda job: 0.5).what
