"""Habits are found where they are, with their line, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from edl_labs.trace import TracedGPU, antipatterns, read_trace
from tests.unit.trace.loops import QUIET

MB = 1_000_000


def names(step: Callable[[TracedGPU, dict[str, Any]], None]) -> set[str]:
    gpu = TracedGPU("A100-80GB", **QUIET)
    state = {
        "loss": gpu.empty(4),
        "input": gpu.empty(MB),
        "pageable": gpu.host_empty(MB),
        "pinned": gpu.host_empty(MB, pin_memory=True),
    }
    for _ in range(5):
        with gpu.step():
            step(gpu, state)
    return {finding.name for finding in antipatterns(gpu.trace())}


def clean(gpu: TracedGPU, state: dict[str, Any]) -> None:
    gpu.copy(state["input"], state["pinned"], non_blocking=True)
    for _ in range(10):
        gpu.launch("gemm_bf16", flops=1e11, moved_bytes=10 * MB, dtype="bf16")
    gpu.item(state["loss"])


def reads(gpu: TracedGPU, state: dict[str, Any]) -> None:
    for _ in range(4):
        gpu.launch("gemm", duration_s=1e-4)
        gpu.item(state["loss"])


def pageable(gpu: TracedGPU, state: dict[str, Any]) -> None:
    gpu.copy(state["input"], state["pageable"], non_blocking=True)
    gpu.launch("gemm", duration_s=1e-4)


def per_parameter(gpu: TracedGPU, state: dict[str, Any]) -> None:
    gpu.launch("gemm", duration_s=1e-2)
    with gpu.annotate("Optimizer.step#Adam.step"):
        for _ in range(30):
            gpu.launch("elementwise_kernel", duration_s=6e-6)


def layouts(gpu: TracedGPU, state: dict[str, Any]) -> None:
    for _ in range(3):
        gpu.launch("nchwToNhwcKernel", duration_s=2e-5)
        gpu.launch("gemm", duration_s=1e-4)


def tiny(gpu: TracedGPU, state: dict[str, Any]) -> None:
    for _ in range(50):
        gpu.launch("add", duration_s=1.5e-6)


def churn(gpu: TracedGPU, state: dict[str, Any]) -> None:
    gpu.call("cudaMalloc", 1e-4)
    gpu.launch("gemm", duration_s=1e-3)
    gpu.call("cudaFree", 1e-4)


def empties(gpu: TracedGPU, state: dict[str, Any]) -> None:
    gpu.launch("gemm", duration_s=1e-3)
    with gpu.annotate("torch.cuda.empty_cache"):
        gpu.call("cudaFree", 1e-4)


def full_precision(gpu: TracedGPU, state: dict[str, Any]) -> None:
    for _ in range(10):
        gpu.launch("gemm", flops=1e10, moved_bytes=10 * MB, dtype="fp32")


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (reads, "host reads"),
        (pageable, "blocking copies"),
        (per_parameter, "optimiser per parameter"),
        (layouts, "layout conversions"),
        (tiny, "tiny kernels"),
        (churn, "allocator churn"),
        (empties, "needless empty_cache"),
        (full_precision, "no tensor cores"),
    ],
)
def test_each_habit_is_found_alone(step: Callable[[TracedGPU, dict[str, Any]], None], name: str) -> None:
    assert {name} == names(step)


def test_a_clean_loop_has_none() -> None:
    assert set() == names(clean)


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        ("ampere_sgemm_128x64_nn", True),
        ("cutlass_80_simt_sgemm_256x128_8x4_nn_align1", True),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8", True),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64", False),
        ("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", False),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT", False),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", False),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits>", False),
        ("void at::native::vectorized_elementwise_kernel", False),
    ],
)
def test_names_of_real_kernels_tell_tensor_cores(kernel: str, found: bool) -> None:
    events = [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 0, "dur": 5},
        {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": 9, "dur": 500},
    ]

    assert found == any(finding.name == "no tensor cores" for finding in antipatterns(read_trace(events)))


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        ("void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false>(cudnnTensor)", True),
        ("void scal_kernel<float, 1>(cublasTransposeParams<float>, float const*)", False),
        ("void cutlass::Kernel2<cutlass_80_transpose_gemm>(Params)", False),
    ],
)
def test_a_kernel_reorders_data_by_its_own_name_and_not_by_its_arguments(kernel: str, found: bool) -> None:
    events = [
        {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": 600 * i, "dur": 500} for i in range(3)
    ]

    assert found == any(finding.name == "layout conversions" for finding in antipatterns(read_trace(events)))


def test_the_line_of_the_habit_is_named() -> None:
    gpu = TracedGPU("A100-80GB", **QUIET)
    loss = gpu.empty(4)
    for _ in range(4):
        with gpu.step():
            for _ in range(3):
                gpu.launch("gemm", duration_s=1e-4)
                gpu.item(loss)
    (finding,) = antipatterns(gpu.trace())

    assert finding.line.startswith("test_antipatterns.py(")
    assert all((finding.what, finding.why, finding.next))
