"""Mechanisms of devices on each backend, with its true verdict, shares, line and speed-up, worked out by hand.

All have six equal steps of which the first is left out. Sums of a period are beside each mechanism, in µs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.data.traces.sheets import BACKENDS, Backend, Sheet, steps

STEPS = 6
LOOKALIKE = (
    "void at::native::elementwise_kernel_manual_unroll<128, 4, at::native::(anonymous namespace)::"
    "type_specialized_broadcast_kernel_launcher<1>::apply<at::native::BinaryFunctor<float>>(int)::{lambda(int)#1}>(int)"
)


@dataclass(frozen=True)
class Truth:
    """What is true of a trace: `period_us` by cause sums to a step; `speedup` is (cause, factor).

    `line` is what the largest share is blamed on; `overlap` the hidden part of communication; `note` a part of a note.
    """

    verdict: str
    period_us: dict[str, float]
    speedup: tuple[str, float] | None = None
    line: str = ""
    overlap: float | None = None
    note: str = ""
    device_us: tuple[float, float] = (0.0, 0.0)
    """By step the device's computing, and its communication that nothing hides: what other tools report as well."""


@dataclass(frozen=True)
class Case:
    """A trace of the corpus: its name, how it is made, and the truth."""

    name: str
    make: Callable[[], Sheet]
    truth: Truth


def _gpu_bound(sheet: Sheet) -> None:
    sheet.launch("gemm", 0, 5, 10, 600)


def _launch_bound(sheet: Sheet) -> None:
    # Each operator takes 49 µs, all of it in its call; its kernel begins 10 µs after it.
    for number in range(20):
        sheet.host("cpu_op", "aten::add", 49 * number, 49)
        sheet.launch("add_kernel", 49 * number, 49, 49 * number + 59, 10)


def _reads(moved_bytes: int) -> Callable[[Sheet], None]:
    def write(sheet: Sheet) -> None:
        # Code 60, launch 5, latency 5, kernel 100, 60 until the copy, which takes 4 and ends with its call.
        for start in (0, 234, 468, 702):
            sheet.launch("gemm", start + 60, 5, start + 70, 100)
            link = sheet.call(sheet.backend.copy, start + 65, 169)
            sheet.copied(sheet.backend.to_host, start + 230, 4, link=link, moved_bytes=moved_bytes)

    return write


def _upload(sheet: Sheet) -> None:
    link = sheet.call(sheet.backend.copy, 20, 450)
    sheet.copied(sheet.backend.to_device, 70, 400, link=link, moved_bytes=8_000_000)
    sheet.launch("gemm", 470, 5, 480, 220)


def _synchronises(sheet: Sheet) -> None:
    for start in (0, 240, 480, 720):
        sheet.launch("gemm", start + 60, 5, start + 70, 100)
        sheet.call(sheet.backend.sync, start + 65, 175)


def _data(sheet: Sheet) -> None:
    sheet.host("user_annotation", "dataloader", 0, 600)
    sheet.launch("gemm", 600, 5, 610, 150)


def _allocates(sheet: Sheet) -> None:
    sheet.call(sheet.backend.alloc, 0, 200)
    sheet.launch("gemm", 200, 5, 210, 60)


def _host(sheet: Sheet) -> None:
    sheet.host("python_function", "train.py(12): augment", 0, 600)
    sheet.launch("gemm", 600, 5, 610, 150)


def _exposed(sheet: Sheet) -> None:
    sheet.launch("gemm", 0, 5, 10, 300)
    sheet.launch(sheet.backend.collective, 5, 5, 310, 500)


def _hidden(sheet: Sheet) -> None:
    # The first kernel makes what is sent while the second one runs.
    sheet.launch("gemm", 0, 5, 10, 100)
    sheet.launch(sheet.backend.collective, 3, 2, 110, 400, stream=20)
    sheet.launch("gemm", 5, 5, 110, 500)


def _half_hidden(sheet: Sheet) -> None:
    sheet.launch("gemm", 0, 5, 10, 400)
    sheet.launch(sheet.backend.collective, 5, 5, 310, 700, stream=20)


def _graph(sheet: Sheet) -> None:
    link = sheet.call(sheet.backend.graph, 0, 10)
    for number in range(10):
        sheet.work("fused_kernel", 20 + 40 * number, 40, link=link)
    sheet.work(sheet.backend.collective, 420, 100, link=link)


def _lookalike(sheet: Sheet) -> None:
    sheet.launch(LOOKALIKE, 0, 5, 10, 300)


def _blind(sheet: Sheet) -> None:
    sheet.call(sheet.backend.launch, 0, 300)
    sheet.call(sheet.backend.sync, 400, 500)


# By mechanism: what a step writes, its period, how long its mark lasts, and the truth.
_MECHANISMS: dict[str, tuple[Callable[[Sheet], None], float, float, Truth]] = {
    "gpu bound": (
        _gpu_bound,
        600,
        10,
        Truth("GPU-bound", {"compute": 600}, line="gemm", device_us=(600, 0)),
    ),
    "launch bound": (
        # Kernels 20 x 10; of the operators' 980, 19 x 10 are beside kernels; 20 µs of code, 10 of them beside the last.
        _launch_bound,
        1000,
        1000,
        Truth("launch-bound", {"compute": 200, "launch": 790, "host": 10}, ("launch", 5.0), device_us=(200, 0)),
    ),
    **{
        f"read of {size} B": (
            # Of 234: the kernel 100, the copy 4, waiting 60, and 70 until the next kernel, held up by the read.
            _reads(size),
            936,
            936,
            Truth(
                "synchronisation-bound", {"compute": 400, "copy": 16, "sync": 520}, ("sync", 2.34), device_us=(400, 0)
            ),
        )
        for size in (64, 65_536)
    },
    "read of 8 B": (
        _reads(8),
        936,
        936,
        # One number: its copy is part of the read.
        Truth("synchronisation-bound", {"compute": 400, "sync": 536}, ("sync", 2.34), device_us=(400, 0)),
    ),
    "blocking upload": (
        # In the call 50 of waiting and 400 of copying, which delays launch and latency (10) and code (20).
        # Without: 245 of the host's own, of which 225 are beside the kernel, and two calls of 5.
        _upload,
        700,
        700,
        Truth("copy-bound", {"compute": 220, "copy": 430, "sync": 50}, ("copy", 700 / 255), device_us=(220, 0)),
    ),
    "synchronises": (
        # Of 240: the kernel 100, 70 of the call after it, 70 until the next kernel, held up by the call.
        _synchronises,
        960,
        960,
        Truth("synchronisation-bound", {"compute": 400, "sync": 560}, ("sync", 2.4), device_us=(400, 0)),
    ),
    "waits for data": (
        # The host never waits for the device: 605 of its own, beside which the kernel runs.
        _data,
        605,
        605,
        Truth(
            "data-bound",
            {"compute": 150, "data": 450, "launch": 5},
            ("data", 605 / 150),
            "dataloader",
            device_us=(150, 0),
        ),
    ),
    "allocates": (
        _allocates,
        205,
        205,
        Truth("allocation-bound", {"compute": 60, "alloc": 140, "launch": 5}, ("alloc", 205 / 60), device_us=(60, 0)),
    ),
    "code of one's own": (
        _host,
        605,
        605,
        Truth(
            "host-bound",
            {"compute": 150, "host": 450, "launch": 5},
            ("host", 605 / 150),
            "train.py(12): augment",
            device_us=(150, 0),
        ),
    ),
    "exposed communication": (
        _exposed,
        800,
        10,
        Truth(
            "communication-bound",
            {"compute": 300, "communication": 500},
            ("communication", 800 / 300),
            overlap=0.0,
            device_us=(300, 500),
        ),
    ),
    "hidden communication": (
        _hidden,
        600,
        10,
        Truth("GPU-bound", {"compute": 600}, ("compute", 1.5), "gemm", overlap=1.0, device_us=(600, 0)),
    ),
    "half hidden communication": (
        _half_hidden,
        1000,
        10,
        Truth("communication-bound", {"compute": 400, "communication": 600}, overlap=100 / 700, device_us=(400, 600)),
    ),
    "graph replay": (
        _graph,
        500,
        10,
        Truth(
            "GPU-bound",
            {"compute": 400, "communication": 100},
            ("communication", 1.25),
            overlap=0.0,
            device_us=(400, 100),
        ),
    ),
    "a lookalike of a collective": (_lookalike, 300, 5, Truth("GPU-bound", {"compute": 300}, device_us=(300, 0))),
    "no device events": (
        _blind,
        1000,
        1000,
        Truth(
            "host only: device events are missing", {"launch": 300, "sync": 500, "host": 200}, note="no device event"
        ),
    ),
}


def _on(backend: Backend, name: str) -> Case:
    write, period, marked, truth = _MECHANISMS[name]

    def make() -> Sheet:
        # A host that runs ahead marks its steps as it issues them: the device follows at its own pace.
        sheet = Sheet(backend)
        if marked >= period:
            return steps(sheet, STEPS, period, write)
        return _ahead(sheet, write, period=period, issued=marked)

    if backend.name == "nsys" and truth.line.startswith("train.py"):
        # Python's frames are not in this export.
        truth = Truth(truth.verdict, truth.period_us, truth.speedup, device_us=truth.device_us)
    return Case(f"{backend.name}: {name}", make, truth)


def _ahead(sheet: Sheet, write: Callable[[Sheet], None], *, period: float, issued: float) -> Sheet:
    for number in range(STEPS):
        at = len(sheet.events)
        sheet.at = number * issued
        sheet.step(number, issued)
        write(sheet)
        for event in sheet.events[at:]:
            if event["pid"] != 1:
                event["ts"] += number * (period - issued)
    return sheet


def device_cases() -> list[Case]:
    """Each mechanism on each backend."""
    return [_on(backend, name) for backend in BACKENDS.values() for name in _MECHANISMS]
