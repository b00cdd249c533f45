"""The cases of who_hangs: four or five states of eight ranks for each answer, others on the way or apart."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab07_many_gpus.hang_slips import ABSENT, ANSWERS

_RANKS = 8  # a node of eight GPUs, as most are
_CALLS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
# What another member of the group does that is missing, too, in turns 1, 2 and 3: it comes later in ANSWERS.
_MISSING_TOO = {
    "other call": ("computes", "ended", "no sign"),
    "other size": ("computes", "ended", "no sign"),
    "lost": ("computes", None, "ended"),
    "ended early": ("computes", None, "computes"),
}


@case_source("who_hangs")
def states(rng: Any) -> list[Case]:
    cases = [_case(rng, answer, turn) for answer in ANSWERS for turn in range(4)]
    cases += [_chain(rng, answer) for answer in ABSENT]
    return [Case(given=cases[at]) for at in rng.permutation(len(cases))]


def _case(rng: Any, answer: str, turn: int) -> dict[str, Any]:
    """Turn 0: all ranks in one group. 1: four of them, for whom the others wait. 2, 3: nobody waits for the others.

    A second member of the group may be missing, too: see _MISSING_TOO.
    """
    if answer == "crossed groups":
        return _circle(rng, turn)
    start = int(rng.integers(0, 5))
    groups = {"world": list(range(_RANKS)), "tensor": list(range(start, start + 4))}
    where = "world" if turn == 0 else "tensor"
    numbers = {name: int(rng.integers(3, 90)) for name in groups}
    call = _call(rng, where, numbers)
    ranks = [_past(rng, rank, groups, numbers, call["numel"]) for rank in range(_RANKS)]
    culprit, second = (int(rank) for rank in rng.permutation(groups[where])[:2])
    for rank in groups[where]:
        _waits(ranks[rank], call)
    if turn:
        _apart(rng, ranks, groups, answer, turn, numbers)
    doing = _MISSING_TOO[answer][turn - 1] if turn and answer in _MISSING_TOO else None
    if doing:
        _stops(ranks[second], doing)
    if answer in ABSENT:
        _stops(ranks[culprit], ABSENT[answer])
    else:
        _mismatches(rng, ranks[culprit], answer, turn, call)
    return {"groups": groups, "ranks": ranks}


def _call(rng: Any, group: str, numbers: Any) -> dict[str, Any]:
    numel = int(rng.integers(1, 60)) * 1000
    return {"group": group, "number": numbers[group], "call": str(rng.choice(_CALLS)), "numel": numel}


def _circle(rng: Any, turn: int) -> dict[str, Any]:
    """Turns 0 and 1: one group within the other. 2 and 3: three ranks in both, and others in one of them alone.

    `first` is the group that all ranks but one call first, of those that are in both.
    """
    start = int(rng.integers(1, 4))
    groups = {"world": list(range(_RANKS)), "tensor": list(range(start, start + 4))}
    if turn > 1:
        groups["data"] = [*range(start), *range(start + 1, start + 4)]
    first, other = (("world", "tensor"), ("tensor", "world"), ("data", "tensor"), ("tensor", "data"))[turn]
    both = [rank for rank in groups["tensor"] if rank in groups[first] and rank in groups[other]]
    culprit = int(rng.choice(both))
    numbers = {name: int(rng.integers(3, 90)) for name in groups}
    same = turn in (0, 3)
    if same:
        numbers[other] = numbers[first]  # of two groups: these do not meet
    call = _call(rng, first, numbers)
    there = {**call, "group": other, "number": numbers[other], "numel": call["numel"] + 1000 * same}
    ranks = [_past(rng, rank, groups, numbers, call["numel"]) for rank in range(_RANKS)]
    for rank in {*groups[first], *groups[other]}:
        _waits(ranks[rank], there if rank == culprit or rank not in groups[first] else call)
    return {"groups": groups, "ranks": ranks}


def _chain(rng: Any, answer: str) -> dict[str, Any]:
    """A group waits for one of its ranks, which waits in another group for the rank at fault."""
    order = list(range(_RANKS))[:: -1 if answer == "ended early" else 1]
    link = order[int(rng.integers(1, 4))]
    groups = {"world": list(range(_RANKS)), "tensor": sorted(order[:4]), "data": sorted([link, *order[4:]])}
    numbers = {name: int(rng.integers(3, 90)) for name in groups}
    calls = {name: _call(rng, name, numbers) for name in ("tensor", "data")}
    ranks = [_past(rng, rank, groups, numbers, calls["data"]["numel"]) for rank in range(_RANKS)]
    for rank in range(_RANKS):
        _waits(ranks[rank], calls["data" if rank in groups["data"] else "tensor"])
    _stops(ranks[int(rng.choice(order[4:]))], ABSENT[answer])
    return {"groups": groups, "ranks": ranks}


def _mismatches(rng: Any, state: Any, answer: str, turn: int, call: Any) -> None:
    changed = dict(call)
    if answer == "other call":
        changed["call"] = str(rng.choice([name for name in _CALLS if name != call["call"]]))
    if answer == "other size" or turn % 2 == 0:
        changed["numel"] = call["numel"] + 1000 * int(rng.integers(1, 5))
    state["calls"].pop()
    _waits(state, changed)


def _past(rng: Any, rank: int, groups: Any, numbers: Any, numel: int) -> dict[str, Any]:
    """One or two calls of each group, so that lists differ in length."""
    calls = [
        {"group": name, "number": numbers[name] - back, "call": "all_reduce", "numel": numel + 500, "done": True}
        for name in groups
        if rank in groups[name]
        for back in (2, 1)[int(rng.integers(0, 2)) :]
    ]
    return {"doing": "computes", "calls": calls}


def _waits(state: Any, call: Any) -> None:
    state["doing"] = "waits"
    state["calls"].append({**call, "done": False})


def _stops(state: Any, doing: str) -> None:
    state["doing"] = doing
    if not state["calls"][-1]["done"]:
        state["calls"].pop()


def _apart(rng: Any, ranks: Any, groups: Any, answer: str, turn: int, numbers: Any) -> None:
    """The ranks outside of the group: they wait for all ranks, or do something that nobody waits for."""
    for rank in range(_RANKS):
        if rank in groups["tensor"]:
            continue
        if turn == 1:
            _waits(ranks[rank], {"group": "world", "number": numbers["world"], "call": "barrier", "numel": 0})
        else:
            ranks[rank]["doing"] = str(rng.choice(["no sign", "ended"] if answer in ABSENT else ["computes", "ended"]))
