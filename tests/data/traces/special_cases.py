"""Loops on a CPU, and traces with something beside their steps, with their truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.data.traces.mechanisms import STEPS, Case, Truth
from tests.data.traces.sheets import BACKENDS, CPU, Backend, Sheet, steps


def _cpu(name: str, period: float, write: Callable[[Sheet], None], truth: Truth) -> Case:
    return Case(f"cpu: {name}", lambda: steps(Sheet(CPU), STEPS, period, write), truth)


def _many_small(sheet: Sheet) -> None:
    for number in range(50):
        sheet.host("cpu_op", "aten::add", 12 * number, 8)


def _host_events(*events: tuple[str, str, float, float]) -> Callable[[Sheet], None]:
    def write(sheet: Sheet) -> None:
        for event in events:
            sheet.host(*event)

    return write


def _cpu_cases() -> list[Case]:
    mark, operator = "user_annotation", "cpu_op"
    return [
        _cpu(
            "computes",
            1000,
            _host_events((operator, "aten::mm", 50, 900)),
            Truth("compute-bound", {"compute": 900, "host": 100}),
        ),
        _cpu("many small operators", 600, _many_small, Truth("overhead-bound", {"launch": 596, "host": 4})),
        _cpu(
            "waits for data",
            1000,
            _host_events(
                (mark, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 700),
                (operator, "aten::mm", 700, 300),
            ),
            Truth("data-bound", {"data": 700, "compute": 300}, ("data", 1000 / 300)),
        ),
        _cpu(
            "code of one's own",
            1000,
            _host_events(("python_function", "train.py(12): augment", 0, 800), (operator, "aten::mm", 800, 200)),
            Truth("host-bound", {"host": 800, "compute": 200}, ("host", 5.0), "train.py(12): augment"),
        ),
        _cpu(
            "copies",
            1000,
            _host_events((operator, "aten::copy_", 0, 600), (operator, "aten::mm", 600, 400)),
            Truth("copy-bound", {"copy": 600, "compute": 400}, ("copy", 2.5)),
        ),
        _cpu(
            "communicates",
            1000,
            _host_events((operator, "aten::mm", 0, 400), (mark, "gloo:all_reduce", 400, 600)),
            Truth("communication-bound", {"communication": 600, "compute": 400}, ("communication", 2.5)),
        ),
    ]


def _lead_in() -> Sheet:
    sheet = Sheet(BACKENDS["cuda"])
    sheet.launch("fill", 0, 5, 10, 50)
    sheet.at = 1e6
    steps(sheet, STEPS, 1000, lambda on: on.launch("gemm", 190, 5, 200, 800))
    sheet.at += 5e5
    sheet.launch("last", 0, 5, 10, 50)
    return sheet


def _two_devices() -> Sheet:
    def write(sheet: Sheet) -> None:
        sheet.launch("stage_0", 190, 5, 200, 400)
        sheet.launch("stage_1", 195, 5, 600, 400, device=1, stream=7)

    return steps(Sheet(BACKENDS["cuda"]), STEPS, 1000, write)


def _unknown() -> Sheet:
    def write(sheet: Sheet) -> None:
        sheet.launch("gemm", 190, 5, 200, 800)
        sheet.host("quantum_runtime_events", "collapse", 300, 100)

    return steps(Sheet(BACKENDS["cuda"]), STEPS, 1000, write)


def _mtia() -> Sheet:
    def write(sheet: Sheet) -> None:
        link = sheet.call("runFunction - job", 90, 5)
        sheet.host("cpu_op", "aten::linear", 80, 16)
        event: dict[str, Any] = {
            "ph": "X",
            "cat": "mtia_ccp_events",
            "name": "linear",
            "ts": sheet.at + 100,
            "dur": 900,
        }
        sheet.events.append({**event, "pid": 0, "tid": 3, "args": {"correlation": link, "stream": 3}})

    return steps(Sheet(Backend("mtia", "mtia_runtime", *[""] * 8)), STEPS, 1000, write)


def special_cases() -> list[Case]:
    """All of them."""
    return [
        *_cpu_cases(),
        Case(
            "cuda: a long time before and after the steps",
            _lead_in,
            Truth("GPU-bound", {"compute": 800, "host": 195, "launch": 5}, ("host", 1000 / 805)),
        ),
        Case(
            "cuda: two devices of one process",
            _two_devices,
            Truth("GPU-bound", {"compute": 800, "host": 190, "launch": 10}, note="this process drives 2 devices"),
        ),
        Case(
            "cuda: a category that is not known",
            _unknown,
            Truth(
                "GPU-bound",
                {"compute": 800, "host": 195, "launch": 5},
                note='category "quantum_runtime_events" (600 µs',
            ),
        ),
        Case("mtia: computes", _mtia, Truth("GPU-bound", {"compute": 900, "launch": 16, "host": 84})),
    ]
