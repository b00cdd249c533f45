"""Recorded programs on real processes of torch.distributed on this machine, and what they left against the replay."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl_labs.values import Value
from edl_labs.virtual.cluster.cluster_contents import NOTHING, ClusterContents, Part, Source, Sum
from edl_labs.virtual.cluster.meetings import RankOperation
from edl_labs.virtual.cluster.program import TensorForm
from edl_labs.virtual.errors import VirtualClusterError

if TYPE_CHECKING:
    import numpy as np

BACKENDS = ("gloo", "nccl")
RANKS = (2, 8)  # processes that a laptop starts in reasonable time
_MOST_ELEMENTS = 2_000_000  # they travel as text; more would take minutes
_POLL_S = 0.05  # imperceptible beside the seconds that a process takes to start
_START_S = 120.0  # importing torch on a busy machine, several times at once
# Relative error after a few sums in each dtype; whole numbers are exact.
_TOLERANCE = {"fp64": 1e-12, "fp32": 1e-5, "tf32": 1e-5, "fp16": 4e-3, "bf16": 3e-2, "fp8": 0.3}


@dataclass(frozen=True, repr=False)
class RealRun(Value):
    """A program that ran on real processes and left what the replay says; how many tensors and elements were compared.

    `refused` are the calls that the backend did not accept, with its message, where they were passed over.
    """

    backend: str
    ranks: int
    tensors: int
    elements: int
    took_s: float
    refused: tuple[str, ...] = ()


class MarkedContents(ClusterContents):
    """Contents with a number for every element: what each rank's data is at first, and what kernels write."""

    def __init__(self, engine: Any, *, modulus: int) -> None:
        self._modulus, self._derived = modulus, dict[object, tuple[str, list[list[Part]]]]()
        self.marks: dict[tuple[int, int], list[tuple[Source, int]]] = {}
        super().__init__(engine)

    def starts(self, rank: int, number: int, form: TensorForm) -> np.ndarray:
        """What a tensor holds at first."""
        import numpy as np

        return self._own((rank, number, ""), np.arange(form.numel)) if form.fill == "own" else np.zeros(form.numel)

    def values(self, parts: list[Part], size: int) -> np.ndarray:
        """The numbers of these parts; NaN where nothing was written."""
        import numpy as np

        found = np.zeros(size)
        for start, stop, total in parts:
            at = np.arange(start, stop)
            for source, offset, count in total:
                found[start:stop] += float(count) * self._source(source, at + offset)
        return found

    def _source(self, source: Source, at: np.ndarray) -> np.ndarray:
        import numpy as np

        if source == NOTHING:
            return np.full(len(at), np.nan)
        if source[0] < 0 and source[1] in self._derived:
            op, given = self._derived[source[1]]
            size = given[0][-1][1]
            combine: dict[str, Any] = {"max": np.max, "min": np.min, "product": np.prod}
            return combine[op]([self.values(parts, size) for parts in given], axis=0)[at]
        return self._own(source, at)

    def _own(self, source: Source, at: np.ndarray) -> np.ndarray:
        seed = int(str(source[1]), 16) if source[0] < 0 else 5 * source[0] + 3 * int(str(source[1]))
        return (seed % self._modulus + at) % self._modulus + 1.0

    def _local(self, node: RankOperation) -> None:
        super()._local(node)
        if node.entry["op"] == "launch":
            written = [(part[2] - part[1], self._read(node.rank, part)[0][2]) for part in node.entry.get("writes", ())]
            self.marks[node.rank, node.index] = [(total[0][0], size) for size, total in written]

    def _reduced(self, op: str, given: list[list[Part]]) -> list[Part]:
        whole = super()._reduced(op, given)
        if op not in ("sum", "avg"):
            total: Sum = whole[0][2]
            self._derived[total[0][0][1]] = op, given
        return whole

    def marked(self, rank: int, index: int) -> list[list[float]]:
        """What the kernel of this operation writes, for each of its outputs."""
        import numpy as np

        return [self._own(source, np.arange(size)).tolist() for source, size in self.marks.get((rank, index), [])]


def check_backend(backend: str, ranks: int) -> None:
    """VirtualClusterError unless this machine can run so many processes with this backend."""
    if backend not in BACKENDS or type(ranks) is not int or not RANKS[0] <= ranks <= RANKS[1]:
        raise VirtualClusterError(
            f"a real run cannot use the backend {str(backend)[:20]!r} on {str(ranks)[:20]} ranks",
            why=f"the backends are {' and '.join(BACKENDS)}, with {RANKS[0]} to {RANKS[1]} processes on this machine",
            next='call cluster.run(program, backend="gloo", ranks=2), or omit backend to run only in virtual time',
        )
    if importlib.util.find_spec("torch") is None:
        raise VirtualClusterError("torch is not installed", why="a real run needs torch", next="run pip install torch")
    import torch
    import torch.distributed as dist

    there = dist.is_available() and (dist.is_gloo_available() if backend == "gloo" else dist.is_nccl_available())
    if not there:
        raise VirtualClusterError(
            f"this build of torch does not include {backend}",
            why=f"torch was built without {backend}",
            next="omit backend to run in virtual time",
        )
    if backend == "nccl" and torch.cuda.device_count() < ranks:
        raise VirtualClusterError(
            f"nccl needs {ranks} GPUs, but this machine has {torch.cuda.device_count()}",
            why="each rank needs its own GPU",
            next='use backend="gloo", which needs no GPU, or fewer ranks',
        )


def run_really(
    programs: list[list[Any]], engine: Any, *, backend: str, timeout_s: float, pass_over: bool = False
) -> RealRun:
    """Play programs on one process a rank, and compare what every tensor holds with the replay of `engine`.

    Processes meet in a file and talk over this machine's loopback; all are ended after `timeout_s` beyond their start.
    A kernel writes numbers that stand for its result. VirtualClusterError where a process fails, where they do not end,
    and where contents differ. With `pass_over`, calls that the backend refuses are listed instead, and what they would
    have written is not compared.
    """
    forms = [side.tensors for side in engine.graph.sides]
    total = sum(form.numel for side in forms for form in side)
    if total > _MOST_ELEMENTS:
        raise VirtualClusterError(
            f"{total:,} elements are too many for a real run here",
            why=f"a real run only checks contents, and is limited to {_MOST_ELEMENTS:,} elements",
            next="use smaller tensors: the run still checks every chunk on every rank",
        )
    has_product = any(entry.get("reduce") == "product" for program in programs for entry in program)
    contents = MarkedContents(engine, modulus=3 if has_product else 11)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="edl_labs_ranks_") as name:
        folder = Path(name)
        for rank, program in enumerate(programs):
            starts = {number: contents.starts(rank, number, form).tolist() for number, form in enumerate(forms[rank])}
            marks = {at: contents.marked(rank, at) for at, entry in enumerate(program) if entry["op"] == "launch"}
            given = {"ranks": len(programs), "backend": backend, "timeout_s": timeout_s, "program": program}
            given |= {"pass_over": pass_over}
            text = json.dumps(given | {"starts": starts, "marks": marks})
            (folder / f"{rank}.json").write_text(text, encoding="utf-8")
        _processes(folder, len(programs), backend, timeout_s)
        refused = [_refused(folder, rank) for rank in range(len(programs))]
        unwritten = [
            {part[0] for at in refused[rank] for part in program[at].get("writes", ())} | _undefined(rank, program)
            for rank, program in enumerate(programs)
        ]
        compared = [_compared(folder, rank, contents, forms[rank], unwritten[rank]) for rank in range(len(programs))]
    tensors, elements = (sum(one[at] for one in compared) for at in (0, 1))
    told = tuple(dict.fromkeys(text for one in refused for text in one.values()))
    return RealRun(backend, len(programs), tensors, elements, time.monotonic() - began, told)


def _undefined(rank: int, program: list[Any]) -> set[int]:
    """Tensors that a reduce leaves undefined, those of all ranks but its root's: gloo keeps partial sums there."""
    groups: list[list[int]] = [entry["ranks"] for entry in program if entry["op"] == "new_group"]
    found = set()
    for entry in program:
        if entry["op"] == "reduce":
            root = entry["root"] if entry["group"] == 0 else groups[entry["group"] - 1][entry["root"]]
            found |= set() if root == rank else {part[0] for part in entry["writes"]}
    return found


def _refused(folder: Path, rank: int) -> dict[int, str]:
    found = json.loads((folder / f"{rank}.refused").read_text(encoding="utf-8"))
    return {int(at): text for at, text in found.items()}


def _processes(folder: Path, ranks: int, backend: str, timeout_s: float) -> None:
    code = "from edl_labs.virtual.cluster.real_rank import main; main()"
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else dict(os.environ)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(folder), str(rank)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank in range(ranks)
    ]
    try:
        deadline = time.monotonic() + _START_S + timeout_s
        while any(one.poll() is None for one in started):
            _raise_failure(folder, [one.poll() for one in started], backend)
            if time.monotonic() > deadline:
                waiting = [str(rank) for rank, one in enumerate(started) if one.poll() is None]
                raise VirtualClusterError(
                    f"ranks {', '.join(waiting)} did not finish within {_START_S + timeout_s:.0f} s",
                    why="either the machine is very busy, or the processes wait for each other at a point where "
                    "streams would not wait",
                    next="run the program again with a larger timeout_s, or on fewer ranks",
                )
            time.sleep(_POLL_S)
        _raise_failure(folder, [one.poll() for one in started], backend)
    finally:
        for one in started:
            one.kill()
            one.wait()


def _raise_failure(folder: Path, codes: list[int | None], backend: str) -> None:
    for rank, code in enumerate(codes):
        if code:
            told = folder / f"{rank}.error"
            text = told.read_text(encoding="utf-8") if told.exists() else f"the process ended with {code}"
            raise VirtualClusterError(
                f"rank {rank} failed on {backend}: {text[:300]}",
                why=f"{backend} does not support every operation and dtype of the virtual cluster",
                next="use a different operation or dtype for the real run; the program does run in virtual time",
            )


def _compared(
    folder: Path, rank: int, contents: MarkedContents, forms: list[TensorForm], unwritten: set[int]
) -> tuple[int, int]:
    import numpy as np

    elements = 0
    with np.load(folder / f"{rank}.npz") as found:
        names = [name for name in found.files if int(name) not in unwritten]
        for name in names:
            form, got = forms[int(name)], found[name]
            want = contents.values(contents.memory[rank][int(name)], form.numel)
            known = ~np.isnan(want)
            close = np.isclose(got, want, rtol=_TOLERANCE.get(form.dtype, 0.0), atol=0.0) | ~known
            if not close.all():
                at = int(np.argmin(close))
                raise VirtualClusterError(
                    f"on rank {rank}, element {at} of {form.name} is {got[at]:g}, but the replay expects {want[at]:g}",
                    why=f"{int((~close).sum())} of {form.numel} elements differ from the replay",
                    next="look for a race (replay.races), or for sums that exceed the range of the dtype",
                )
            elements += int(known.sum())
        return len(names), elements
