"""What communicates is told by annotation, metadata, or the kernel's own name; never by a part of a longer name."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from edl_labs.trace import read_ranks, read_trace
from edl_labs.trace.collectives import function_name, is_collective
from tests.unit.trace.trace_files import launched

_NAMES = Path(__file__).parents[2] / "data" / "kernel_names"
_WORDS = ("all_reduce", "AllReduce", "allgather", "reduce_scatter", "allToAll", "nccl", "ncclDevKernel", "nvshmem")
# A name that holds such a word elsewhere than as the whole name of its function.
_FORMS = (
    "softmax_{}_kernel",
    "{}_free_attention_fwd",
    "warp_{}_sum",
    "block{}Kernel",
    "void at::native::elementwise_kernel<128, {}_launcher<float>>(int)",
    "void my::gemm_with_{}<float>(float*)",
    "void gemm<{}::Params>({}::Params)",
    "triton_poi_fused_{}_add_3",
    "x{}",
    "{}like",
    "{}_aware_gemm",
    "void f(ns::{}*)",
    "cub::{}Agent",
    "void outer<inner::{}_kernel<4>, (anonymous namespace)::{}>::run(int)",
    "matmul_{}_epilogue",
    "embedding_{}_indices",
    "void tuned::tile_then_{}<__half, 8>(void)",
    "_Z14softmax_kernelI{}EvPf",
    "check_{}_reference",
    "reorder_before_{}",
    "unpack_{}_bucket",
    "scale_grad_of_{}",
    "{}Planner_histogram",
    "sort_{}_keys",
    "pad_{}_input",
    "transpose_{}_output",
)


def names(kind: str) -> list[str]:
    lines = (_NAMES / f"{kind}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def made_up() -> list[str]:
    return [form.format(word, word) for form, word in product(_FORMS, _WORDS)]


def test_there_are_enough_names_to_be_wrong_about() -> None:
    assert 300 <= len(set(names("communicating") + names("computing")))
    assert 200 <= len(set(made_up()))


@pytest.mark.parametrize("kind", ["communicating", "computing"])
def test_kernels_of_libraries_are_told_apart(kind: str) -> None:
    wrong = [name for name in names(kind) if is_collective(name) != (kind == "communicating")]

    assert [] == wrong


def test_a_word_inside_a_longer_name_is_no_collective() -> None:
    assert [] == [name for name in made_up() if is_collective(name)]


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("void a::b<c<d>, 3>::e(f<g>*)", "a::b::e"),
        ("std::enable_if<(x), void>::type ns::kernel<1>(int)", "ns::kernel"),
        ("void (anonymous namespace)::k<float>(float*) [clone .kd]", "k"),
        ("void broken<a, b<c", "broken"),
        ("_ZN12_GLOBAL__N_13fooEv", "foo"),
        ("_Zoops", "_Zoops"),
        ("", ""),
    ],
)
def test_a_function_s_own_name(kernel: str, name: str) -> None:
    assert name == function_name(kernel)


def test_metadata_of_a_kernel_say_that_it_communicates() -> None:
    events = launched("mystery", 1, **{"Collective name": "allreduce", "Process Group Name": "7"})
    (kernel,) = read_trace(events).events("kernel", "communication")

    assert "communication" == kernel.kind


def test_an_operator_inside_a_collective_computes() -> None:
    mark = {"ph": "X", "cat": "cpu_op", "name": "_c10d_functional::all_reduce", "pid": 1, "tid": 1, "ts": 0, "dur": 500}
    clone = {"ph": "X", "cat": "cpu_op", "name": "aten::clone", "pid": 1, "tid": 1, "ts": 5, "dur": 40}
    events = [mark, clone, *launched("copy_kernel", 1, at=10.0), *launched("mystery", 2, at=100.0)]

    assert {"copy_kernel": "kernel", "mystery": "communication"} == {
        event.name: event.kind for event in read_trace(events).events("kernel", "communication")
    }


def test_a_collective_of_one_rank_makes_none_of_another_s_kernels_communicate() -> None:
    mark = {"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "pid": 1, "tid": 1, "ts": 0, "dur": 50}
    events = [mark, *launched("mystery", 1, at=10.0), *launched("gemm", 1, at=500.0, pid=2, device=1)]

    assert [["communication"], ["kernel"]] == [
        [event.kind for event in rank.events("kernel", "communication")] for rank in read_ranks(events)
    ]
