"""planted: each mend counts for itself; shortcuts, other results and forged programs do not."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab05_profiling.planted_faults import MENDS

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


@pytest.mark.parametrize("mend", MENDS)
def test_one_mend_is_worth_a_sixth(mend, judged):
    outcome = judged("planted", train=script(**MENDED[mend]))

    assert pytest.approx(1 / 6, abs=1e-3) == outcome.points
    assert "partly" == outcome.state


def test_all_six_mends_pass_with_batches_cached_on_the_host(judged):
    options = {key: value for mend in MENDED.values() for key, value in mend.items()}

    assert "passed" == judged("planted", train=script(**options)).state


def test_the_planted_script_itself_earns_nothing(judged):
    assert 0 == judged("planted", train=script()).points


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

    assert "the training itself is not in the program" == judged("planted", train=elsewhere).what


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

    assert "the training itself is not in the program" == judged("planted", train=cheap).what


@pytest.mark.parametrize("value", [[], [float("nan")], None, "losses", [0.0] * 10**5])
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
