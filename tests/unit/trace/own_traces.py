"""Pairs of traces as `hand_in` writes them: real loops of this machine, and made-up CUDA steps with known truth."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from edl_labs.device import torch_threads
from edl_labs.trace import TorchLoop, hand_in
from edl_labs.trace.handed_in import read_handed_in
from edl_labs.trace.own_change import OwnPair
from edl_labs.trace.packed_trace import FILES, packed
from edl_labs.trace.pair_facts import facts
from tests.data.traces.sheets import BACKENDS, Sheet

Tree = dict[str, Any]
_ROWS, _WIDTH = 64, 128
_PAUSE_S = 0.02  # far above the work of a step here


def cpu_loops() -> dict[str, tuple[TorchLoop, TorchLoop, str]]:
    """Five kinds of loop on a CPU, before and after a change, and the cause that the change removes."""
    weight = torch.randn(_WIDTH, _WIDTH)
    batch, large = torch.randn(_ROWS, _WIDTH), torch.ones(8_000_000, dtype=torch.float64)

    def products(x: torch.Tensor) -> None:
        for _ in range(4):
            x = x @ weight

    def with_python(x: torch.Tensor) -> None:
        time.sleep(_PAUSE_S)
        products(x)

    def slow() -> Iterator[torch.Tensor]:
        while True:
            time.sleep(_PAUSE_S)
            yield batch

    def one_by_one(x: torch.Tensor) -> None:
        products(x)
        for row in range(_ROWS * 12):
            x[row % _ROWS, row % 2].add_(1.0)

    def all_at_once(x: torch.Tensor) -> None:
        products(x)
        x[:, :2].add_(6.0)

    def large_sine(x: torch.Tensor) -> None:
        with_python(x)
        torch.sin(large)

    def small_sine(x: torch.Tensor) -> None:
        with_python(x)
        torch.sin(large[:1000])

    def loop(step: Callable[[torch.Tensor], None], data: Any = None) -> TorchLoop:
        return TorchLoop(step, data=data or [batch])

    return {
        "a slow source of batches": (loop(products, slow()), loop(products), "data"),
        "a pause between calls": (loop(with_python), loop(products), "host"),
        "many tiny operators": (loop(one_by_one), loop(all_at_once), "launch"),
        "a costly function": (loop(large_sine), loop(small_sine), "compute"),
        "emptying a cache": (loop(_emptying(products)), loop(products), "alloc"),
    }


def _emptying(step: Callable[[torch.Tensor], None]) -> Callable[[torch.Tensor], None]:
    def emptied(x: torch.Tensor) -> None:
        with torch.profiler.record_function("empty_cache"):
            time.sleep(_PAUSE_S)
        step(x)

    return emptied


@cache
def recorded(name: str) -> tuple[bytes, bytes]:
    """The two files of one of `cpu_loops`, recorded now."""
    before, after, _ = cpu_loops()[name]
    with TemporaryDirectory() as folder, torch_threads(1):
        hand_in(before, after, steps=6, folder=folder)
        first, second = ((Path(folder) / file).read_bytes() for file in FILES)
    return first, second


@dataclass(frozen=True)
class Step:
    """A CUDA step in µs: what the host does before its launches, the upload, and kernels, each with its launch."""

    load_us: float = 0.0
    code_us: float = 0.0
    upload_us: float = 0.0
    sync_us: float = 0.0
    kernels: int = 4
    kernel_us: float = 100.0
    launch_us: float = 5.0
    rows: int = 512

    def write(self, sheet: Sheet, number: int) -> None:
        """One step at the sheet's place, a little longer or shorter each time."""
        now, wobble = 0.0, 1 + 0.01 * ((number * 7) % 5 - 2)
        if self.load_us:
            sheet.host("user_annotation", "dataloader", 0, self.load_us * wobble)
            now += self.load_us * wobble
        if self.code_us:
            sheet.host("python_function", "train.py(12): augment", now, self.code_us * wobble)
            now += self.code_us * wobble
        if self.upload_us:
            link = sheet.call(sheet.backend.copy, now, self.upload_us + 20)
            sheet.copied(
                sheet.backend.to_device, now + 15, self.upload_us, link=link, moved_bytes=int(self.upload_us * 5000)
            )
            now += self.upload_us + 20
        free = now
        for kernel in range(self.kernels):
            shapes = {"Input Dims": [[self.rows, 256], [256, 256]], "Concrete Inputs": ["", ""]}
            sheet.host("cpu_op", "aten::mm", now, self.launch_us + 2, **shapes)
            free = max(free, now + self.launch_us + 5)
            taken = self.kernel_us * (1 + 0.02 * ((number * 11 + kernel * 5) % 7 - 3))
            sheet.launch("sm80_gemm", now + 1, self.launch_us, free, taken)
            free, now = free + taken, now + self.launch_us + 3
        if self.sync_us:
            sheet.call(sheet.backend.sync, now, free - now + self.sync_us)
            free = free + self.sync_us
        sheet.step(number, max(now, free) if self.sync_us else now)
        sheet.at += max(now, free) + 2


CUDA = {
    "data": (Step(load_us=900), Step(load_us=100)),
    "host": (Step(code_us=900), Step(code_us=50)),
    "copy": (Step(upload_us=900), Step(upload_us=200)),
    "launch": (Step(kernels=8, kernel_us=4, launch_us=60), Step(kernels=8, kernel_us=4, launch_us=10)),
    "compute": (Step(kernel_us=300, load_us=300), Step(kernel_us=60, load_us=300)),
}
STAMP = {"kind": "cuda", "device": "cuda:0", "device_name": "NVIDIA A100-SXM4-80GB", "torch": "2.15.0", "sm_count": 108}


def cuda_pair(before: Step, after: Step, *, steps: int = 8) -> tuple[Tree, Tree]:
    """Two trees, as unpacked files, of made-up steps."""
    first, second = (_tree(step, which, steps) for step, which in ((before, "before"), (after, "after")))
    return first, second


def _tree(step: Step, which: str, steps: int) -> Tree:
    sheet = Sheet(BACKENDS["cuda"])
    for number in range(steps):
        step.write(sheet, number)
    tree = {"schemaVersion": 1, "deviceProperties": [{"name": STAMP["device_name"]}], "traceEvents": sheet.events}
    about = {"which": which, "pair": "a pair", "input_shapes": [[[step.rows, 256]]], "stamp": dict(STAMP)}
    data, _ = packed(tree, about, (), scrub=str)
    return unpacked(data)


def unpacked(data: bytes) -> Tree:
    return dict(json.loads(gzip.decompress(data)))


def as_file(tree: Tree) -> bytes:
    return gzip.compress(json.dumps(tree).encode(), mtime=0)


def pair_of(before: Tree | bytes, after: Tree | bytes) -> OwnPair:
    """Both as the judge reads them."""
    files = [one if isinstance(one, bytes) else as_file(one) for one in (before, after)]
    return OwnPair(*(facts(read_handed_in(file)) for file in files))


__all__ = ["CUDA", "Step", "as_file", "cpu_loops", "cuda_pair", "pair_of", "recorded", "replace", "unpacked"]
