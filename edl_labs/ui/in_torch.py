"""A program of a virtual machine once more in plain torch: run where its device is, and what it took, measured."""

from __future__ import annotations

import ast
import importlib.util
import json
import linecache
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import IO, Any

from edl_labs.clock import Clock, clock_for
from edl_labs.device import best_device, describe, is_quick
from edl_labs.units import seconds

_LIMIT_S = 90.0  # processes that import torch take some 5 s on an idle laptop, a minute on a busy one
_RUNS = 5  # after one that warms up: the median of three or more is no outlier
_POLL_S = 0.05  # imperceptible beside the seconds that a process takes to start
_RANK = """
import json, sys, time
import torch
import torch.distributed as dist
folder, rank, ranks, call = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/met", rank=rank, world_size=ranks)
names = {"__name__": "rank", "torch": torch}
for source in json.load(open(f"{folder}/cells.json", encoding="utf-8")):
    exec(compile(source, "cell", "exec"), names)
found = names[call]()
for name in [name for name, value in found.items() if callable(value)]:
    times = []
    for _ in range(6):
        dist.barrier()
        start_s = time.perf_counter()
        found[name]()
        times.append(time.perf_counter() - start_s)
    found[name] = sorted(times[1:])[2]
if rank == 0:
    with open(f"{folder}/found.json", "w", encoding="utf-8") as out:
        json.dump(found, out)
dist.barrier()
dist.destroy_process_group()
"""


Program = Callable[[], Mapping[str, Callable[[], Any] | int]]


def in_torch(
    program: Program,
    *,
    ranks: int = 0,
    uses: Sequence[Callable[..., Any]] = (),
    anywhere: bool = False,
    told: str = "",
) -> None:
    """Run a program of plain torch where its device is, and print what it took.

    The program makes what it needs and returns, by name, functions, which are timed (once to warm up, then the median
    of five), or counts. Without `ranks` it needs CUDA, unless it runs `anywhere`. With `ranks`, so many processes of
    this machine run it on the gloo backend of `torch.distributed`; they get the cell of the program and those of the
    functions that it `uses`. Where it cannot run, and in a run for marks, one line says so, and another one `told`: a
    modelled or recorded figure.

    NotImplementedError where a function that it uses is not written yet.
    """
    missing = _missing(ranks, anywhere=anywhere)
    if not missing:
        try:
            found = _on_processes(program, ranks, uses) if ranks else _timed(program)
        except _NotHere as error:
            missing = str(error)
        else:
            where = f"{ranks} processes on this processor" if ranks else describe().device_name
            print(f"measured on {where}:", ", ".join(f"{name} {_said(value)}" for name, value in found.items()))
            return
    print(f"not run here: {missing}. The program above is what would run.")
    if told:
        print(told)


def _timed(program: Program) -> dict[str, float]:
    """What a program's functions take, in this process."""
    clock = clock_for(best_device())
    return {name: _median_s(value, clock) if callable(value) else value for name, value in program().items()}


def _median_s(call: Callable[[], Any], clock: Clock) -> float:
    times = []
    for _ in range(1 + _RUNS):
        clock.synchronize()
        start_s = clock.now_s()
        call()
        clock.synchronize()
        times.append(clock.now_s() - start_s)
    return median(times[1:])


def _said(value: float) -> str:
    return seconds(value) if isinstance(value, float) else str(value)


class _NotHere(Exception):
    """Why a program could not run on this machine."""


def _missing(ranks: int, *, anywhere: bool) -> str:
    """What this machine lacks for a program; nothing where it can run."""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    if not ranks and best_device() == "cuda":
        return ""
    if not ranks and not anywhere:
        return "there is no CUDA device"
    if is_quick():
        return "this is a quick run"
    if not ranks:
        return ""
    import torch.distributed as dist

    return "" if dist.is_available() and dist.is_gloo_available() else "this build of torch has no gloo backend"


def _cell_of(function: Callable[..., Any]) -> str:
    """The text of the notebook's cell that defines a function."""
    source = "".join(linecache.getlines(function.__code__.co_filename))
    if not source:
        raise _NotHere(f"the source of {function.__name__} is not in a cell")
    return source


def _on_processes(program: Program, ranks: int, uses: Sequence[Callable[..., Any]]) -> dict[str, float]:
    """What rank 0 of so many processes returns."""
    cells = [_definitions(_cell_of(one)) for one in (*uses, program)]
    with tempfile.TemporaryDirectory(prefix="edl_labs_ranks_") as name:
        folder = Path(name)
        (folder / "cells.json").write_text(json.dumps(cells), encoding="utf-8")
        _run(folder, ranks, program.__name__)
        found: dict[str, float] = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    return found


def _definitions(cell: str) -> str:
    """A cell without the statements that show something: what defines names is left."""
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign)
    try:
        tree = ast.parse(cell)
    except SyntaxError:
        raise _NotHere("its cell is not plain Python") from None
    return "\n".join(ast.unparse(one) for one in tree.body if isinstance(one, kept))


def _run(folder: Path, ranks: int, call: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if sys.platform == "linux":
        environment["GLOO_SOCKET_IFNAME"] = "lo"
    command = [sys.executable, "-c", _RANK, str(folder)]
    errors = [open(folder / f"{rank}.error", "w+", encoding="utf-8") for rank in range(ranks)]  # noqa: SIM115
    started = [
        subprocess.Popen(
            [*command, str(rank), str(ranks), call], env=environment, stdout=errors[rank], stderr=errors[rank]
        )
        for rank in range(ranks)
    ]
    try:
        deadline = time.monotonic() + _LIMIT_S
        while any(one.poll() is None for one in started):
            if time.monotonic() > deadline:
                raise _NotHere(f"its processes did not end within {_LIMIT_S:.0f} s")
            if any(one.poll() for one in started):
                break
            time.sleep(_POLL_S)
        for one, error in zip(started, errors, strict=True):
            if one.poll():
                _raise_failure(error)
    finally:
        for one, error in zip(started, errors, strict=True):
            one.kill()
            one.wait()
            error.close()


def _raise_failure(error: IO[str]) -> None:
    error.seek(0)
    said = [line for line in error.read().splitlines() if line.strip()]
    last = next((line for line in reversed(said) if "Error" in line), "no message")
    last = re.sub(r"^\[rank\d+\]: ", "", last)  # torch puts it before each line of a traceback
    if last.startswith("NotImplementedError"):
        raise NotImplementedError
    raise _NotHere(f"a process ended with {last[:160]!r}")
