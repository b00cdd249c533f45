"""One process of a real run: plays a rank's recorded program with torch.distributed, and saves its tensors."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl_labs.virtual.cluster.program import COLLECTIVE, MESSAGE, OPERATIONS

if TYPE_CHECKING:
    import torch

_DTYPES = {
    "fp64": "float64", "fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16",
    "fp8": "float8_e4m3fn", "int8": "int8", "int32": "int32", "int64": "int64", "uint8": "uint8",
}  # fmt: skip


class RealRank:
    """Plays entries of a program. What a stream was given waits for its last communication; the host does not."""

    def __init__(self, given: dict[str, Any], device: str) -> None:
        import torch
        import torch.distributed as dist

        self._torch, self._dist, self._device, self._given = torch, dist, device, given
        self._memory: dict[int, torch.Tensor] = {}
        self._groups: list[tuple[Any, list[int]]] = [(None, list(range(given["ranks"])))]
        self._works: dict[int, list[Any]] = {}
        self._pending: dict[int, list[Any]] = defaultdict(list)
        self._events: dict[int, list[Any]] = {}
        self.refused: dict[int, str] = {}

    def play(self) -> dict[int, torch.Tensor]:
        """Run the program; what every tensor that was not freed holds in the end."""
        for index, entry in enumerate(self._given["program"]):
            try:
                self._one(index, entry)
                if self._given["pass_over"]:
                    _wait(self._pending[entry.get("stream", 0)])
            except (RuntimeError, ValueError, TypeError) as error:
                told = f"{self._told(entry)}: {str(error).splitlines()[0]}"
                if not self._given["pass_over"]:
                    raise RuntimeError(told) from error
                self.refused[index] = told
                self._pending.clear()
        for works in [*self._pending.values(), *self._works.values()]:
            _wait(works)
        return self._memory

    def _told(self, entry: dict[str, Any]) -> str:
        touched = [*entry.get("reads", ()), *entry.get("writes", ())]
        dtypes = {str(self._memory[part[0]].dtype).removeprefix("torch.") for part in touched}
        return " of ".join([entry["op"] + (f" ({entry['reduce']})" if "reduce" in entry else ""), *sorted(dtypes)])

    def _one(self, index: int, entry: dict[str, Any]) -> None:
        op, stream = entry["op"], entry.get("stream", 0)
        runs = OPERATIONS[op].runs
        if runs in (MESSAGE, COLLECTIVE):
            _wait(self._pending[stream])
            issued = self._message(entry) if runs == MESSAGE else self._collective(entry)
            works = [_Once(work) for work in issued]
            if entry.get("async"):
                self._works[len(self._works)] = works
            elif op == "barrier":
                _wait(works)
            else:
                self._pending[stream] = works
        elif op == "record":
            self._events[entry["event"]] = list(self._pending[stream])
        elif op == "wait_event":
            self._pending[stream] += self._events.get(entry["event"], [])
        elif op == "wait_work":
            self._pending[stream] += self._works[entry["work"]]
        elif op in ("tensor", "free", "new_group"):
            self._made(op, entry)
        elif op in ("launch", "add", "copy", "scale"):
            _wait(self._pending[stream])
            self._local(index, entry)

    def _made(self, op: str, entry: dict[str, Any]) -> None:
        if op == "free":
            # Memory that something still travels to or from must outlive it.
            for works in [*self._pending.values(), *self._works.values()]:
                _wait(works)
            del self._memory[entry["tensor"]]
        elif op == "new_group":
            self._groups.append((self._dist.new_group(entry["ranks"]), entry["ranks"]))
        else:
            start = self._given["starts"][str(entry["tensor"])]
            self._memory[entry["tensor"]] = self._as_tensor(start, entry["dtype"])

    def _as_tensor(self, values: Any, dtype: str) -> torch.Tensor:
        plain = self._torch.tensor(values, dtype=self._torch.float64)
        return plain.to(getattr(self._torch, _DTYPES[dtype])).to(self._device)

    def _parts(self, entry: dict[str, Any], side: str) -> list[torch.Tensor]:
        return [self._memory[number][start:stop] for number, start, stop in entry[side]]

    def _local(self, index: int, entry: dict[str, Any]) -> None:
        read = self._parts(entry, "reads") if "reads" in entry else []
        written = self._parts(entry, "writes") if "writes" in entry else []
        if entry["op"] == "launch":
            for part, marks in zip(written, self._given["marks"].get(str(index), []), strict=True):
                part.copy_(self._torch.tensor(marks, dtype=self._torch.float64))
        elif entry["op"] == "add":
            written[0].copy_(read[0] + read[1])
        else:
            written[0].copy_(read[0] * entry["factor"] if entry["op"] == "scale" else read[0])

    def _message(self, entry: dict[str, Any]) -> list[Any]:
        call, side = (self._dist.isend, "reads") if entry["op"] == "send" else (self._dist.irecv, "writes")
        return [call(part, entry["peer"]) for part in self._parts(entry, side)]

    def _collective(self, entry: dict[str, Any]) -> list[Any]:
        group, ranks = self._groups[entry["group"]]
        read, written = self._parts(entry, "reads"), self._parts(entry, "writes")
        more: dict[str, Any] = {"group": group, "async_op": True}
        if "reduce" in entry:
            more["op"] = getattr(self._dist.ReduceOp, entry["reduce"].upper())
        root = ranks[entry["root"]] if "root" in entry else 0
        count, dist = len(ranks), self._dist
        calls: dict[str, Callable[[], Any]] = {
            "all_reduce": lambda: dist.all_reduce(written[0], **more),
            "reduce": lambda: dist.reduce(written[0], root, **more),
            "broadcast": lambda: dist.broadcast(written[0], root, **more),
            "all_gather": lambda: dist.all_gather(_cut(written, count), read[0], **more),
            "reduce_scatter": lambda: dist.reduce_scatter(written[0], _cut(read, count), **more),
            "all_to_all": lambda: self._exchange(_cut(written, count), _cut(read, count), more),
            "barrier": lambda: dist.barrier(**more),
        }
        work = calls[entry["op"]]()
        return [work] if work is not None else []

    def _exchange(self, written: list[torch.Tensor], read: list[torch.Tensor], more: dict[str, Any]) -> None:
        """Of one tensor each way, which gloo has too: cut into parts and put together again."""
        came = self._torch.empty_like(self._torch.cat(written))
        sizes = [len(part) for part in written], [len(part) for part in read]
        work = self._dist.all_to_all_single(came, self._torch.cat(read), *sizes, group=more["group"], async_op=True)
        if work is not None:
            work.wait()
        for part, found in zip(written, came.split(sizes[0]), strict=True):
            part.copy_(found)


def _cut(parts: list[torch.Tensor], count: int) -> list[torch.Tensor]:
    return list(parts[0].chunk(count)) if len(parts) == 1 else parts


class _Once:
    """A work that is waited for once: a second wait for a message of gloo's is one for another message."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def wait(self) -> None:
        """Keep the host until it is over."""
        work, self._work = self._work, None
        if work is not None:
            work.wait()


def _wait(works: list[_Once]) -> None:
    for work in works:
        work.wait()
    works.clear()


def main() -> None:
    """`folder rank`: play `rank`.json of the folder; leave `rank`.npz there, or `rank`.error."""
    folder, rank = Path(sys.argv[1]), int(sys.argv[2])
    try:
        _played(folder, rank)
    except Exception as error:
        (folder / f"{rank}.error").write_text(str(error) or type(error).__name__, encoding="utf-8")
        # Others may wait for this rank; they are ended from outside.
        raise SystemExit(1) from error


def _played(folder: Path, rank: int) -> None:
    import numpy as np
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    given = json.loads((folder / f"{rank}.json").read_text(encoding="utf-8"))
    store, limit = dist.FileStore(str(folder / "store"), given["ranks"]), timedelta(seconds=given["timeout_s"])
    device = f"cuda:{rank}" if given["backend"] == "nccl" else "cpu"
    if device != "cpu":
        torch.cuda.set_device(rank)
    dist.init_process_group(given["backend"], store=store, rank=rank, world_size=given["ranks"], timeout=limit)
    player = RealRank(given, device)
    found: dict[str, Any] = {str(at): one.to("cpu", torch.float64).numpy() for at, one in player.play().items()}
    np.savez(folder / f"{rank}.npz", **found)
    (folder / f"{rank}.refused").write_text(json.dumps(player.refused), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()
