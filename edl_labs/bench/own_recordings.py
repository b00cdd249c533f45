"""Small experiments on this machine's best device, kept in files that a notebook elsewhere shows as measured.

`edl-labs record --mine` runs them where a GPU is, for some seconds each; the folder travels home with its student.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from edl_labs.clock import Clock, clock_for
from edl_labs.device import best_device, describe
from edl_labs.hardware.recordings import MINE, Recording, Series, mine
from edl_labs.units import byte_rate, flop_rate, seconds

_LAUNCHES = (1, 2, 5, 10, 20, 50, 100, 200)  # up to where a queue of launches fills
_REPEATS = 5  # the median tolerates two that are disturbed
_LEAST_S = 0.02  # a thousand ticks of the coarsest clock
_BATCHES = (1, 4, 16, 64, 256)  # of one layer: from bound by weights to bound by products
_SIDES = (1000, 1024, 1031, 1088, 1096)  # multiples of 8, 64, 1, 64 and 8 elements of fp16
_Points = tuple[str, str, tuple[float, ...], dict[str, tuple[str, list[float]]]]
_SHOWN: dict[str, Callable[[float], str]] = {"s": seconds, "byte/s": byte_rate, "FLOP/s": flop_rate}


def record_mine(folder: Path, *, device: str = "", scale: float = 1.0) -> list[Path]:
    """Run every experiment on `device` (the best one here) and write a recording of each into `folder`.

    `scale` makes tensors smaller, for a quick try.
    """
    device = device or best_device()
    stamp, clock = describe(device), clock_for(device)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for experiment, run in EXPERIMENTS.items():
        label, unit, x, series = run(device, clock, scale)
        recording = Recording(
            name=experiment,
            title=f"measured by you on {stamp.device_name}",
            experiment=experiment,
            hardware_key=stamp.hardware_key or device.split(":")[0].upper(),
            modelled=False,
            environment=stamp.to_json(),
            x_label=label,
            x_unit=unit,
            x=x,
            series=tuple(Series(name, kind, tuple(values)) for name, (kind, values) in series.items()),
        )
        paths.append(folder / f"{experiment}.json")
        paths[-1].write_text(recording.to_json(), encoding="utf-8")
    return paths


def measured_here(experiment: str) -> str:
    """The rows of your own recording of an experiment, with its device; or how to make one."""
    found = mine(experiment)
    if found is None:
        return f"nothing has been measured here yet; on a machine with a GPU, `edl-labs record --mine` writes {MINE}/"
    lines = [f"measured here ({re.sub('^measured by you on ', '', found.title)}):"]
    for number, x in enumerate(found.x):
        values = (f"{one.label} {_SHOWN.get(one.unit, str)(one.values[number])}" for one in found.series)
        lines.append(f"  {found.x_label} {x:g}: {', '.join(values)}")
    return "\n".join(lines)


def _call_s(clock: Clock, call: Callable[[], Any]) -> float:
    """Seconds of one call, the device drained before both readings."""
    call()
    times: list[float] = []
    calls = 1
    while len(times) < _REPEATS:
        clock.synchronize()
        begun_s = clock.now_s()
        for _ in range(calls):
            call()
        clock.synchronize()
        taken_s = clock.now_s() - begun_s
        if taken_s < _LEAST_S and calls < 1 << 16:
            calls *= 2
        else:
            times.append(taken_s / calls)
    return median(times)


def _async_launch(device: str, clock: Clock, scale: float) -> _Points:
    import torch

    side = max(int(512 * scale), 1)
    a = torch.ones(side, side, device=device)
    early: list[float] = []
    late: list[float] = []
    for count in _LAUNCHES:
        pairs = []
        for _ in range(_REPEATS):
            clock.synchronize()
            begun_s = clock.now_s()
            for _ in range(count):
                torch.matmul(a, a)
            at_once_s = clock.now_s() - begun_s
            clock.synchronize()
            pairs.append((at_once_s, clock.now_s() - begun_s))
        early.append(median(pair[0] for pair in pairs))
        late.append(median(pair[1] for pair in pairs))
    series = {"host returned, not synchronised": ("s", early), "device done, synchronised": ("s", late)}
    return "launches", "1", tuple(map(float, _LAUNCHES)), series


def _roofs(device: str, clock: Clock, scale: float) -> _Points:
    import torch

    count, side = max(int((1 << 26) * scale), 1), max(int(4096 * scale), 1)
    source = torch.ones(count, device=device)
    target = torch.empty_like(source)
    copied = 2 * 4 * count / _call_s(clock, partial(target.copy_, source))
    a = torch.ones(side, side, device=device)
    multiplied = 2 * side**3 / _call_s(clock, partial(torch.matmul, a, a))
    series = {"copy": ("byte/s", [copied]), "fp32 product": ("FLOP/s", [multiplied])}
    return "roof", "1", (1.0,), series


def _aligned_products(device: str, clock: Clock, scale: float) -> _Points:
    import torch

    rates = []
    for side in _SIDES:
        whole = max(int(side * scale), 1)
        a = torch.ones(whole, whole, device=device, dtype=torch.float16 if device != "cpu" else torch.bfloat16)
        rates.append(2 * whole**3 / _call_s(clock, partial(torch.matmul, a, a)))
    return "side of the matrices", "elements", tuple(map(float, _SIDES)), {"16-bit product": ("FLOP/s", rates)}


def _layer_by_batch(device: str, clock: Clock, scale: float) -> _Points:
    import torch

    side = max(int(2048 * scale), 1)
    layer = torch.nn.Linear(side, side).to(device)
    rates = []
    with torch.no_grad():
        for batch in _BATCHES:
            given = torch.ones(batch, side, device=device)
            rates.append(2 * batch * side**2 / _call_s(clock, partial(layer, given)))
    return "batch", "samples", tuple(map(float, _BATCHES)), {"one layer": ("FLOP/s", rates)}


EXPERIMENTS: dict[str, Callable[[str, Clock, float], _Points]] = {
    "async_launch": _async_launch,
    "roofs": _roofs,
    "aligned_products": _aligned_products,
    "layer_by_batch": _layer_by_batch,
}
