"""The peak of a training step, predicted on fake tensors and then measured: ten models of torchvision on the CPU.

The measured value is the peak of live allocations in the second step, from `torch.profiler(profile_memory=True)`. It
is compared with the prediction twice: with the parameters, the batch and the optimizer's state, which exist before the
step, and without them. The table also shows the peak that torch's own MemTracker (`torch.distributed._tools`) gives on
fake tensors, and the bytes that a forward pass leaves for the backward pass, as counted by us and by torch's
SACEstimator.

Run with `python benchmarks/memory_prediction.py [--models N]`. Exit status 1 means that at least one peak is more than
5 % off.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from edl_labs.numerics import memory_plan
from edl_labs.roofline import Machine
from edl_labs.units import byte_count, percent

TARGET = 0.05
BATCH, SIDE = 8, 96
MODELS = (
    *("resnet18", "mobilenet_v2", "squeezenet1_1", "shufflenet_v2_x0_5", "mnasnet0_5", "regnet_y_400mf"),
    *("vgg11", "alexnet", "efficientnet_b0", "resnet50"),
)
MACHINE = Machine.simple("any", peak_flop_per_s=1e12, bandwidth_byte_per_s=1e11)  # bytes do not depend on it


def measured_peak(model: Any, images: Any, optimizer: Any) -> int:
    """The peak of live allocations in a second step, in bytes above what was there before it."""

    def step() -> None:
        model(images).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        step()
    changes, waiting = [], list(seen.profiler.kineto_results.experimental_event_tree())
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if event.tag.name == "Allocation":
            changes.append((event.start_time_ns, event.extra_fields.alloc_size))
    live = peak = 0
    for _, change in sorted(changes, key=lambda one: one[0]):
        live += change
        peak = max(peak, live)
    return peak


def tracked_peak(name: str, images: Any) -> int:
    """What MemTracker says of the same step on fake tensors, all included."""
    import torchvision
    from torch.distributed._tools.mem_tracker import MemTracker

    from edl_labs.roofline.operators.recorded_run import as_fake

    model = getattr(torchvision.models, name)()
    with as_fake(model, images) as fake:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        tracker = MemTracker()
        tracker.track_external(model, optimizer, fake)
        with tracker:
            for step in range(2):
                model(fake).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
                if step == 0:
                    tracker.reset_mod_stats()
        return max(int(found["Total"]) for found in tracker.get_tracker_snapshot("peak").values())


def saved_by_sac(name: str, images: Any) -> int:
    """The bytes of all operations of a forward pass whose results autograd saves, as SACEstimator notes them.

    Its own clocks want a GPU; bytes do not depend on time, so each operation takes a second here.
    """
    import torchvision
    from torch.distributed._tools.sac_estimator import SACEstimator

    from edl_labs.roofline.operators.recorded_run import as_fake

    model, estimator = getattr(torchvision.models, name)(), SACEstimator()
    estimator._estimate_runtime = lambda func, args, kwargs: (func(*args, **(kwargs or {})), 1.0)
    with as_fake(model, images) as fake, estimator:
        model(fake)
    whole = estimator.sac_mod_stats[min(estimator.sac_mod_stats, key=len)]
    return sum(whole.memory[index] for index in whole.saved_autograd_ops)


def main(arguments: list[str]) -> int:
    import torchvision

    wanted = MODELS[: int(arguments[arguments.index("--models") + 1])] if "--models" in arguments else MODELS
    print(f"torch {torch.__version__}; {BATCH} images of {SIDE} × {SIDE}, SGD with momentum")
    print("| model | predicted | measured | error | error of the step's own part | MemTracker | saved | SACEstimator |")
    print("|---|---|---|---|---|---|---|---|")
    worst = 0.0
    for name in wanted:
        model, images = getattr(torchvision.models, name)(), torch.randn(BATCH, 3, SIDE, SIDE)
        plan = memory_plan(model, images, MACHINE, optimizer="momentum")
        held, saved = plan.peak.held_bytes, max(moment.held_bytes["activations"] for moment in plan.moments)
        before = held["parameters"] + held["inputs"] + held["optimizer"]
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        own, predicted = measured_peak(model, images, optimizer), sum(held.values())
        error, own_error = predicted / (own + before) - 1, (predicted - before) / own - 1
        theirs = map(byte_count, (tracked_peak(name, images), saved, saved_by_sac(name, images)))
        cells = byte_count(predicted), byte_count(own + before), percent(error), percent(own_error), *theirs
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        worst = max(worst, abs(error))
    print(f"worst error {percent(worst)}, target {percent(TARGET)}")
    return int(worst > TARGET)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
