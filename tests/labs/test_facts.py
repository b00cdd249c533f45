"""What labs say of torch, NCCL and chips, against torch itself, the hardware table and arithmetic.

Each corrected statement stands in its lab, what it replaced does not, and where torch can be asked, it is. A cell that
shows a time of a modelled device says in the same cell that it is modelled.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import torch
from torch.nn.modules import _functions
from torch.nn.parallel import DistributedDataParallel

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs
from edl_labs.course.lab.source import Cell, parse
from edl_labs.hardware import accelerator
from edl_labs.virtual.cluster import ClusterMachine

LABS = {lab.name.partition("_")[0]: lab for lab in read_labs(Course(Path(__file__).resolve().parents[2]))}
# Lab, what it says now, and what it said before.
CORRECTED = [
    (
        "lab04",
        "was never recorded ends at once, as in CUDA",
        "An event must be recorded before a stream or the host waits",
    ),
    ("lab06", "with a quarter of the saved tensors", "in a quarter of the memory"),
    ("lab06", "`PYTORCH_ALLOC_CONF=expandable_segments:True`", "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments"),
    ("lab06", "one count for all of them, which is 2C + 1 numbers per rank", "exactly these three numbers a channel"),
    ("lab07", "halving-doubling wins at every size", "hierarchical wins at every size"),
    ("lab07", "It has no halving-doubling", "with a model like yours"),
    ("lab07", "25 MiB by default, and 1 MiB for the first bucket", "caps of 25 MB"),
    ("lab07", "did not run on real processes", "recorded on a CPU: 2 processes"),
    ("lab07b", "2 of bf16 weights, 2 of gradients, and 12 in fp32", "weights, gradients, and Adam's two averages"),
    ("lab07b", "unless product and sum are cut into pieces", "the two forward ones cannot hide"),
    ("lab08", "whose efficiencies are invented", "an A100 with three kinds of tiles: how"),
    ("lab08", "or a RuntimeError where torch has no other algorithm", "at the price of a second pass where one would"),
    ("lab08b", "Eager PyTorch plans nothing", "# PyTorch plans nothing"),
    ("lab08c", "any call that asks the driver for memory", "what makes the host wait and what asks for memory"),
    ("lab08c", "tries up to ten algorithms", "tries every algorithm"),
    ("lab08c", "then runs `lines`, and returns `y * 2`", "after `y = x * scale + shift`, as dicts"),
    ("lab09", "128 images (51 MB: more than its L2 cache holds)", "pixels, 32 images"),
    ("lab09b", "A card with 80 GB has room for 30 sequences of 4096 tokens", "fill the largest memory"),
    ("lab10", "twice that for 2:4 sparse weights", "says its datasheet, and 40 %"),
]
# Short facts of the decks that no exercise asks for: lab, and what it says.
SAID = [
    ("lab02", "peak of some of NVIDIA's Kepler chips"),
    ("lab02", "a free lunch"),
    ("lab03", "cuBLAS before 11, cuDNN before 7.6.3"),
    ("lab03", "multiples of 16 channels in fp16 and 32 in int8 are 32 bytes each"),
    ("lab03", "before version 1.12, it used TF32 for both"),
    ("lab03", "GPUs have had it since Ampere"),
    ("lab03", "came to GPUs with CUDA 8"),
    ("lab05", "`prof.start()` and `prof.stop()`"),
    ("lab05", "is what processes have *reserved*"),
    ("lab05", "Any other process on `nvidia-smi`'s list shares the device"),
    ("lab05", "at its temperature or power limit lowers its clock"),
    ("lab06", "`gc.collect()`, which the deck adds"),
    ("lab06", "*constant buffers* and *contiguous memory*"),
    ("lab07", "and none overtakes another"),
    ("lab08", "EfficientNet v1 and MobileNet"),
    ("lab08", "warp-level primitives"),
    ("lab08c", "TorchScript"),
    ("lab08c", "cudnn.version()"),
    ("lab09b", "The stub `step_parts`, which returns the FLOPs and bytes of a step, is optional"),
    ("lab10", "The factors of two fixes of one operation multiply"),
    ("lab09", "`torch.sparse.to_sparse_semi_structured`"),
]


def text_of(lab: str) -> str:
    """The lab's text on one line."""
    return re.sub(r"\s*\n(# )?", " ", "\n".join(cell.source for cell in LABS[lab].cells))


@pytest.mark.parametrize(("lab", "now", "before"), CORRECTED)
def test_a_corrected_statement_stands_and_the_old_one_does_not(lab: str, now: str, before: str) -> None:
    assert now in text_of(lab)
    assert before not in text_of(lab)


@pytest.mark.parametrize(("lab", "said"), SAID)
def test_a_fact_of_the_decks_is_said(lab: str, said: str) -> None:
    assert said in text_of(lab)


def test_ddp_has_buckets_of_25_mib_and_a_first_one_of_1_mib(tmp_path: Path) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/met", rank=0, world_size=1)
    try:
        ddp = DistributedDataParallel(torch.nn.Linear(2, 2))
    finally:
        torch.distributed.destroy_process_group()

    assert 25 << 20 == ddp.bucket_bytes_cap
    assert 1 << 20 == torch.distributed._DEFAULT_FIRST_BUCKET_BYTES


def test_a_bucket_of_ddp_holds_four_blocks_of_lab07_and_the_first_one_holds_one() -> None:
    block = (32_000, 8_000_000)  # the order in which gradients are ready

    assert block[0] < 1 << 20 <= sum(block)
    assert 3 * sum(block) + block[0] < 25 << 20 <= 4 * sum(block)


def test_a_synchronised_batch_norm_gathers_2c_plus_1_numbers() -> None:
    assert "(2C + 1)" in inspect.getsource(_functions.SyncBatchNorm.forward)


def test_names_of_torch_that_labs_quote_are_there() -> None:
    assert 10 == torch.backends.cudnn.benchmark_limit
    assert hasattr(torch._inductor.config, "layout_optimization")
    assert callable(torch.sparse.to_sparse_semi_structured)
    assert callable(torch.profiler.profile.start)
    assert callable(torch.profiler.profile.stop)


def test_a_ring_of_sixteen_over_all_ports_takes_half_a_millisecond() -> None:
    between = ClusterMachine.of("8xH100", nodes=2).levels[1].byte_per_s

    assert "about 0.5 ms for 100 MB (modelled)" in text_of("lab07")
    assert 0.5e-3 == pytest.approx(2 * 15 / 16 * 100e6 / (8 * between), rel=0.1)


def test_the_tensor_of_lab09_does_not_fit_the_l2_cache_of_an_a100() -> None:
    elements = 128 * 64 * 56 * 56

    assert f"elements = {128} * 64 * 56 * 56" in text_of("lab09")
    assert 51e6 == pytest.approx(2 * elements, rel=0.01)
    assert 2 * elements > 40 << 20


@pytest.mark.parametrize(("memory_bytes", "count"), [(80e9, 30), (186e9, 80)])
def test_so_many_long_sequences_fill_a_card(memory_bytes: float, count: int) -> None:
    sequence_bytes = 4096 * 2 * 32 * 32 * 128 * 2

    assert count == (memory_bytes - 2 * 6_738_000_000) // sequence_bytes
    assert f"{count} " in text_of("lab09b")


def test_989_teraflops_are_those_of_dense_products() -> None:
    assert 989e12 == pytest.approx(accelerator("H100-SXM").peak_flop_per_s("bf16", unit="tensor"), rel=0.001)


# What asks a modelled device, or a price list, for a time.
MODELS = re.compile(
    r"Virtual(GPU|Cluster|Machine)|run_training|operation_runs|compare_machines|\bserving\.|roofline\.bound"
    r"|\b(best_)?light\(|\b(served|scored|run_towers|four_kernels|finish_times|summed|replayed|mended_run|step_of_pipeline"
    r"|report_of)\(|\b(modelled|summing|product|kernel|linear|decode|prefill|step|stem|layout|quality|replayed)_s\("
)
SHOWN = re.compile(r"seconds\(|\.plot\(|draw_timeline\(|repr\(|!r\}")


def shows_a_modelled_time(cell: Cell) -> bool:
    """Whether a cell that is read and run shows a time of a device that is none."""
    is_shown = cell.kind == "code" and cell.role not in ("setup", "parameters", "given", "solve", "check")
    return bool(is_shown and MODELS.search(cell.source) and SHOWN.search(cell.source))


@pytest.mark.parametrize("lab", LABS)
def test_a_time_of_a_device_that_was_not_measured_says_so_in_its_cell(lab: str) -> None:
    silent = [
        cell.label
        for cell in LABS[lab].cells
        if shows_a_modelled_time(cell) and not re.search("modelled|computed", cell.source)
    ]

    assert [] == silent


def test_most_labs_have_such_cells_and_a_silent_one_is_found() -> None:
    having = {name for name, lab in LABS.items() if any(map(shows_a_modelled_time, lab.cells))}
    (silent,) = parse("# %%\ngpu = VirtualGPU(machine)\nprint(seconds(gpu.now_s()))\n", file="lab.py")

    assert len(having) > 10
    assert shows_a_modelled_time(silent)
