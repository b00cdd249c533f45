"""What the numerics library says without a GPU, against a real one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from edl_labs.numerics import (
    amp_report,
    autocast_table,
    bytes_per_parameter,
    saved_activations,
    tensor_core_kernel,
    training_step,
)

pytestmark = pytest.mark.gpu
MIB = 2**20


@pytest.fixture(autouse=True)
def cuda():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device; there is none here")
    torch.cuda.empty_cache()


def small() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.Softmax(-1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_table_made_of_fake_tensors_is_what_cuda_does(dtype: torch.dtype) -> None:
    said = {row.module: row.out for row in autocast_table(small(), torch.zeros(4, 64), dtype=dtype).rows}
    model, seen = small().cuda(), {}
    for name, module in model.named_children():
        module.register_forward_hook(lambda _m, _i, out, name=name: seen.__setitem__(name, out.dtype))
    with torch.autocast("cuda", dtype=dtype):
        model(torch.zeros(4, 64, device="cuda"))
    short = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}

    assert {name: short[found] for name, found in seen.items()} == said


@pytest.mark.parametrize(("recipe", "dtype"), [("fp32 adam", torch.float32), ("bf16 adam", torch.bfloat16)])
def test_resident_memory_is_what_the_recipe_says(recipe: str, dtype: torch.dtype) -> None:
    before = torch.cuda.memory_allocated()
    model = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(4))).to("cuda", dtype)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2048, device="cuda", dtype=dtype)).float().sum().backward()
    optimizer.step()
    held = torch.cuda.memory_allocated() - before

    assert bytes_per_parameter(recipe).of(4 * 2048 * 2048) == pytest.approx(held, rel=0.02, abs=MIB)


def test_peak_memory_is_weights_and_the_counted_live_peak() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.Tanh()) for _ in range(16)))
    x = torch.randn(8192, 512)
    counted = saved_activations(model, x).live_peak_bytes
    model, x = model.cuda(), x.cuda()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    model(x).sum().backward()
    peak = torch.cuda.max_memory_allocated() - before

    assert counted == pytest.approx(peak, rel=0.1, abs=16 * MIB)


def test_autocasts_transient_copies_are_at_most_two_bytes_a_parameter() -> None:
    model = nn.Sequential(*(nn.Linear(4096, 4096, bias=False) for _ in range(4))).cuda()
    x = torch.ones(1, 4096, device="cuda")
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        model(x)
    peak = torch.cuda.max_memory_allocated() - before

    assert peak <= 2 * 4 * 4096 * 4096 + 40 * MIB


def test_a_bf16_products_kernel_is_known_to_use_tensor_cores() -> None:
    model = nn.Linear(4096, 4096, bias=False)
    step = training_step(model, (torch.randn(4096, 4096),), device_type="cuda", dtype=torch.bfloat16)
    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
    times = {event.key: event.self_device_time_total * 1e-6 for event in profile.key_averages()}

    on_tensor_cores = sum(time for name, time in times.items() if tensor_core_kernel(name).tensor_core)

    assert on_tensor_cores > 0.5 * sum(times.values()), sorted(times)


def test_amp_on_large_products_is_faster_as_predicted_and_on_small_ones_is_not() -> None:
    large = amp_report(nn.Linear(8192, 8192, bias=False), torch.randn(8192, 8192), dtype=torch.bfloat16)
    tiny = amp_report(nn.Linear(1024, 512), torch.randn(64, 1024), dtype=torch.bfloat16)

    assert ("faster", True) == (large.measured.verdict, large.prediction.can_help)
    assert "faster" != tiny.measured.verdict
    assert not tiny.prediction.can_help
