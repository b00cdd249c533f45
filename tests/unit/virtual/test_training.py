"""A training job on a VirtualGPU: real losses, and the operations that a GPU would get."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edl_labs.virtual import VirtualGPU, VirtualGPUError, VirtualMachine, replay
from edl_labs.virtual.training import JobPlan, SmallTraining

PLAN = JobPlan(
    seed=3,
    order=(0, 1, 0, 1),
    layers=3,
    width=4,
    samples=6,
    batch_bytes=4096,
    read_s=1e-4,
    forward_s=1e-5,
    backward_s=2e-5,
    convert_s=5e-6,
    update_s=2e-6,
    trim_s=1e-4,
)


@pytest.fixture
def job():
    return SmallTraining(VirtualGPU(VirtualMachine(launch_overhead_s=5e-6)), PLAN)


def launches(job):
    return replay(job.gpu.program, job.gpu.machine).launches


def test_training_on_one_batch_lowers_its_loss(job):
    batch = job.to_device(job.read(0))
    losses = []
    for _ in range(60):
        losses.append(job.forward(batch))
        job.backward(losses[-1])
        job.update_all()

    assert job.item(losses[-1]) < 0.8 * job.item(losses[0])


def test_gradients_are_those_of_torch(job):
    import torch

    loss = job.forward(job.to_device(job.read(0)))
    job.backward(loss)
    weights = {name: torch.tensor(value, requires_grad=True) for name, value in job._weights.items()}
    hidden = torch.tensor(job._inputs[0])
    for layer in range(PLAN.layers):
        hidden = torch.tanh(hidden @ weights[f"layer{layer}.weight"] + weights[f"layer{layer}.bias"])
    expected = ((hidden - torch.tensor(job._targets[0])) ** 2).mean()
    expected.backward()

    assert pytest.approx(expected.item()) == job.item(loss)
    for name, weight in weights.items():
        assert weight.grad.numpy() == pytest.approx(job._gradients[name])


def test_updating_one_by_one_or_all_at_once_is_the_same_step():
    losses = []
    for fused in (True, False):
        job = SmallTraining(VirtualGPU("A100"), PLAN)
        batch = job.to_device(job.read(1))
        job.backward(job.forward(batch))
        if fused:
            job.update_all()
        else:
            for name in job.parameters:
                job.update(name)
        losses.append(job.item(job.forward(batch)))

    assert losses[0] == losses[1]


def test_the_wrong_layout_costs_a_kernel_a_layer_each_way(job):
    batch = job.to_device(job.read(0))
    job.backward(job.forward(batch))

    assert 2 * PLAN.layers == launches(job)["nchwToNhwc"]


def test_converted_weights_cost_one_kernel_a_parameter_once(job):
    job.to_channels_last()
    batch = job.to_device(job.read(0))
    for _ in range(3):
        job.backward(job.forward(batch))

    assert "nchwToNhwc" not in launches(job)
    assert len(job.parameters) == sum(n for name, n in launches(job).items() if name.startswith("convert"))


def test_the_same_plan_gives_the_same_losses_on_any_machine():
    losses = [SmallTraining(VirtualGPU(model), PLAN).forward for model in ("V100", "H200")]
    first, second = (f.__self__.item(f(f.__self__.to_device(f.__self__.read(0)))) for f in losses)

    assert first == second


@pytest.mark.parametrize("number", [-1, 2, "0", True])
def test_a_batch_that_is_none_is_told(job, number):
    with pytest.raises(VirtualGPUError, match="there is no batch"):
        job.read(number)


def test_a_batch_on_the_host_is_none_for_kernels(job):
    with pytest.raises(VirtualGPUError, match="in the host's memory"):
        job.forward(job.read(0))


def test_an_update_needs_a_gradient(job):
    with pytest.raises(VirtualGPUError, match="has no gradient"):
        job.update_all()


def test_batches_are_as_many_as_the_order_names():
    assert (2, 5) == (PLAN.batches, replace(PLAN, order=(0, 4)).batches)
