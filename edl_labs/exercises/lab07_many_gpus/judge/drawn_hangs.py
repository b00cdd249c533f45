"""The cases of who_hangs: four states of eight ranks for each answer, with others that are on the way or apart."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import draws
from edl_labs.exercises.lab07_many_gpus.hanging_ranks import ANSWERS

_RANKS = 8  # a node of eight GPUs, as most are
_CALLS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
_DOING = {"lost": "no sign", "ended early": "ended", "only slow": "computes"}


@draws("who_hangs")
def states(rng: Any) -> list[Any]:
    cases = [_case(rng, answer, turn) for answer in ANSWERS for turn in range(4)]
    return [cases[at] for at in rng.permutation(len(cases))]


def _case(rng: Any, answer: str, turn: int) -> dict[str, Any]:
    """Turn 0: all ranks in one group. 1 and 3: four of them, for whom the others wait; 2: the others are apart."""
    start = int(rng.integers(0, 5))
    groups = {"world": list(range(_RANKS)), "tensor": list(range(start, start + 4))}
    wide = turn == 0 or answer == "crossed groups"
    where = "world" if wide else "tensor"
    members = groups[where]
    culprit = int(rng.choice(groups["tensor"] if answer == "crossed groups" else members))
    numbers = {name: int(rng.integers(3, 90)) for name in groups}
    numel = int(rng.integers(1, 60)) * 1000
    call = {"group": where, "number": numbers[where], "call": str(rng.choice(_CALLS)), "numel": numel}
    ranks = [_past(rank, groups, numbers, numel) for rank in range(_RANKS)]
    for rank in members:
        _waits(ranks[rank], call)
    if not wide:
        _apart(ranks, groups, answer, turn, numbers, numel)
    on_the_way = next(rank for rank in rng.permutation(members) if rank != culprit)
    if turn in (1, 3) and answer in ("other call", "other size", "lost", "ended early"):
        _stops(ranks[on_the_way], "computes")
    _fault(rng, ranks[culprit], answer, turn, call, numbers)
    return {"groups": groups, "ranks": ranks}


def _fault(rng: Any, state: Any, answer: str, turn: int, call: Any, numbers: Any) -> None:
    if answer in _DOING:
        _stops(state, _DOING[answer])
        return
    state["calls"].pop()
    if answer == "crossed groups":
        other = {"group": "tensor", "number": numbers["tensor"], "call": call["call"]}
        _waits(state, {**other, "numel": call["numel"] + 1000 * int(rng.integers(0, 2))})
        return
    changed = dict(call)
    if answer == "other call":
        changed["call"] = str(rng.choice([name for name in _CALLS if name != call["call"]]))
    if answer == "other size" or turn % 2 == 0:
        changed["numel"] = call["numel"] + 1000 * int(rng.integers(1, 5))
    _waits(state, changed)


def _past(rank: int, groups: Any, numbers: Any, numel: int) -> dict[str, Any]:
    mine = [name for name in groups if rank in groups[name]]
    calls = [
        {"group": name, "number": numbers[name] - 1, "call": "all_reduce", "numel": numel + 500, "done": True}
        for name in mine
    ]
    return {"doing": "computes", "calls": calls}


def _waits(state: Any, call: Any) -> None:
    state["doing"] = "waits"
    state["calls"].append({**call, "done": False})


def _stops(state: Any, doing: str) -> None:
    state["doing"] = doing
    if not state["calls"][-1]["done"]:
        state["calls"].pop()


def _apart(ranks: Any, groups: Any, answer: str, turn: int, numbers: Any, numel: int) -> None:
    """The ranks outside of the group: they wait for all ranks, or do something that nobody waits for."""
    for rank in range(_RANKS):
        if rank in groups["tensor"]:
            continue
        if turn != 2:
            _waits(ranks[rank], {"group": "world", "number": numbers["world"], "call": "barrier", "numel": 0})
        else:
            ranks[rank]["doing"] = "ended" if answer == "only slow" else "computes"
