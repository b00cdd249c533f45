"""Conversions around a convolution on CUDA: the profiler sees them where a layout plan has copies, and nowhere else."""

from __future__ import annotations

import pytest

from edl_labs.graph import Graph, as_traced, layer_by_layer

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs CUDA: cuDNN converts layouts there", allow_module_level=True)

CONVERSIONS = ("nchwToNhwc", "nhwcToNchw")  # parts of the names of cuDNN's kernels


def of_layout(layout: str):
    """A convolution of halves that tensor cores compute, with a ReLU behind it, and its images."""
    form = {"memory_format": getattr(torch, layout)}
    layers = torch.nn.Sequential(torch.nn.Conv2d(64, 64, 3, padding=1, bias=False), torch.nn.ReLU()).half()
    return layers.to(**form), torch.randn(32, 64, 56, 56, dtype=torch.float16).to(**form)


def profiled_conversions(layers, images) -> int:
    """How many kernels turn tensors from one layout to the other in a call."""
    layers, images = layers.cuda(), images.cuda()
    with torch.no_grad():
        layers(images)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            layers(images)
            torch.cuda.current_stream().synchronize()
    names = {event.key: event.count for event in profile.key_averages()}
    return sum(count for name, count in names.items() if any(part in name for part in CONVERSIONS))


def test_images_in_nhwc_are_converted_nowhere():
    layers, images = of_layout("channels_last")

    assert {} == as_traced(Graph.of(layers, images)).copies
    assert 0 == profiled_conversions(layers, images)


def test_images_in_nchw_are_converted_as_the_plan_says_at_most():
    """Input, weight and result; where cuDNN's choice reads one of them as it is, that is one less."""
    layers, images = of_layout("contiguous_format")
    planned = len(layer_by_layer(Graph.of(layers, images)).copies)

    assert 3 == planned
    assert 1 <= profiled_conversions(layers, images) <= planned
