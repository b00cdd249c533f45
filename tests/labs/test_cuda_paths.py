"""The cells that take another way where there is a GPU, run on one that torch only says is there.

Nothing of this project has met CUDA yet. What a call would be refused for, operands on two devices, numpy of a device's
tensor, an argument that `torch.cuda` does not have, is refused here too; times mean nothing.
"""

from __future__ import annotations

import io
import re
import types
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import pytest
import torch

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.read import read_labs
from edl_labs.course.lab.source import Cell
from edl_labs.device import QUICK, describe
from edl_labs.roofline import _ceilings
from edl_labs.roofline.microbenchmarks import fastest_kernels, kernels
from tests.fake_cuda import NAME, fake_cuda

LABS = {lab.name: lab for lab in read_labs(Course(Path(__file__).resolve().parents[2]))}
ASKS = ("best_device(", '"cuda"', ".cuda()")
SMALL = {"lab01_gpu_basics": {"copy_mebibytes": 1, "launches": 4}, "lab03_mixed_precision": {"matrix": 64}}


def code_of(lab: Lab) -> list[Cell]:
    return [cell for cell in lab.cells if cell.kind == "code" and cell.role not in ("check", "explain")]


def asking(lab: Lab) -> list[Cell]:
    """The cells that say what happens on a GPU: they ask for one, or name it."""
    return [cell for cell in code_of(lab) if any(text in cell.source for text in ASKS)]


WITH_GPU = [name for name, lab in LABS.items() if any("best_device(" in cell.source for cell in code_of(lab))]


def run(lab: Lab, cells: list[Cell], device: Any) -> tuple[dict[str, int], str]:
    """Operators that each cell brought to the device, and what all of them printed; matrices are small."""
    module, wanted = types.ModuleType("__main__"), asking(lab)
    operators, said = {}, io.StringIO()
    with redirect_stdout(said):
        for cell in cells:
            before = device.operators
            source = re.sub(r"\b(2048|4096)\b", "64", cell.source) if cell in wanted else cell.source
            exec(compile(source, f"{lab.name}, {cell.label}", "exec"), module.__dict__)
            if cell.role == "parameters":
                module.__dict__.update({**lab.parameters["smoke"], **SMALL.get(lab.name, {})})
            operators[cell.label] = device.operators - before
    return operators, said.getvalue()


@pytest.fixture
def small_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Working sets and products that a processor does in no time, and nothing remembered of a GPU that is none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(QUICK, "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fastest_kernels, "_GPU_SHAPES", ((64, 64, 64), (128, 128, 128)))
    monkeypatch.setattr(_ceilings, "_smallest_bytes", lambda *_: 64 << 10)
    monkeypatch.setattr(_ceilings, "_largest_bytes", lambda *_, **_options: 4 << 20)
    monkeypatch.setattr(_ceilings, "link_kernels", partial(kernels.link_kernels, nbytes=1 << 16))
    matplotlib.use("Agg")


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a lab's cells, one after another, on a busy core
@pytest.mark.parametrize("name", WITH_GPU)
def test_a_labs_cells_run_where_torch_says_there_is_a_gpu(name: str, small_gpu: None) -> None:
    lab = LABS[name]
    last = max(place for place, cell in enumerate(code_of(lab)) if cell in asking(lab))
    with fake_cuda() as device:
        operators, said = run(lab, code_of(lab)[: last + 1], device)

    assert sum(operators.values()) > 0
    assert "modelled, not measured" not in said
    assert "No CUDA here" not in said
    assert "cpu" == torch.randn(1).device.type


def test_the_labs_that_ask_for_a_gpu_are_these() -> None:
    assert {"lab01_gpu_basics", "lab02_roofline", "lab03_mixed_precision", "lab05_profiling"} <= set(WITH_GPU)


def test_a_training_step_stays_on_the_device() -> None:
    with fake_cuda() as device:
        layer = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        before = layer.weight.detach().clone()
        layer(torch.ones(3, 4, device="cuda")).sum().backward()
        optimizer.step()
        places = [layer.weight.device.type, layer.weight.grad.device.type, layer.weight.cpu().device.type]
        changed = bool((layer.weight != before).any())

    assert ["cuda", "cuda", "cpu"] == places
    assert changed
    assert device.operators > 0


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: torch.ones(2, device="cuda") + torch.ones(2), RuntimeError),
        (lambda: torch.nn.Linear(2, 2)(torch.ones(1, 2, device="cuda")), RuntimeError),
        (lambda: torch.ones(2, device="cuda").numpy(), TypeError),
        (lambda: torch.ones(2, device="cuda").pin_memory(), RuntimeError),
        (lambda: torch.cuda.get_device_properties(index=0), TypeError),
        (lambda: torch.cuda.Event().elapsed_time(torch.cuda.Event()), ValueError),
        (lambda: torch.cuda.memory_allocated("cuda", 1), TypeError),
    ],
    ids=["two devices", "a layer left behind", "numpy", "pinned twice", "an argument", "an event", "too many"],
)
def test_what_cuda_refuses_is_refused(wrong: Any, error: type[Exception]) -> None:
    with fake_cuda(), pytest.raises(error):
        wrong()


def test_a_graph_runs_its_operators_again_and_refuses_to_be_read() -> None:
    with fake_cuda():
        source, target = torch.ones(2, device="cuda"), torch.zeros(2, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.add(source, source, out=target)
        source.fill_(5.0)
        graph.replay()
        with pytest.raises(RuntimeError, match="capturing"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            source.sum().item()

    assert [10.0, 10.0] == target.tolist()


def test_this_machine_is_afterwards_what_it_was() -> None:
    available = torch.cuda.is_available()
    with fake_cuda():
        name = describe().device_name

    assert NAME == name
    assert available == torch.cuda.is_available()
    assert "cpu" == torch.ones(2).device.type
