"""Recorded programs of a VirtualCluster as evidence: written as text in the student's process, replayed by a judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from edl_labs.errors import Wrong
from edl_labs.virtual import ReplayError
from edl_labs.virtual.case_program import CaseProgram, require_case
from edl_labs.virtual.cluster import ClusterMachine, ClusterReplay, Rank, replay_cluster
from edl_labs.virtual.cluster.program import OPERATIONS, PROGRAM
from edl_labs.virtual.errors import ProgramChanged

MAX_CLUSTER_OPERATIONS = 100_000  # of all ranks: a second's replay, and no sound answer comes near
COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "barrier")
ISSUED = tuple(name for name in OPERATIONS if name != "launch")  # what a rank's own calls record
Programs = list[list[dict[str, Any]]]


def written_programs(programs: Programs) -> str:
    """The programs of all ranks as text: shorter than as plain data, and durations keep every bit."""
    return json.dumps(programs, separators=(",", ":"))


def replayed_programs(text: Any, machine: ClusterMachine) -> ClusterReplay:
    """The programs in `text` on this cluster, which may hang; Wrong when they are none of its ranks'."""
    try:
        return replay_cluster(json.loads(text), machine, max_operations=MAX_CLUSTER_OPERATIONS)
    except (TypeError, ValueError, RecursionError):
        why, then = "the record cannot be read", "use only the rank's own methods; do not change its record"
        raise Wrong("the recorded program is not a program of a VirtualCluster", why=why, next=then) from None
    except ReplayError as error:
        raise Wrong(
            "this cluster does not allow the recorded program", why=f"{error.what}: {error.why}", next=error.next
        ) from None


def case_programs(
    machine: ClusterMachine,
    make: Callable[[Rank], Any],
    use: Callable[[Any], object] = lambda made: None,
    *,
    own: Sequence[str] = (),
) -> list[CaseProgram]:
    """What a case fixes of each rank's program.

    `make(rank)` makes the objects of the case, and `use(made)` does once all that they can do. Operations in `own` are
    issued by the student's code.
    """
    found = []
    for number in range(machine.ranks):
        rank = Rank(number, machine)
        made = make(rank)
        count = len(rank.program)
        use(made)
        found.append(CaseProgram(rank.program[:count], rank.program[count:], own=own))
    return found


def bound_programs(text: Any, machine: ClusterMachine, cases: Sequence[CaseProgram]) -> ClusterReplay:
    """The programs in `text` as `replayed_programs` plays them; Wrong, too, where they differ from their case."""
    run = replayed_programs(text, machine)
    try:
        for rank, (program, case) in enumerate(zip(run.programs, cases, strict=True)):
            require_case(PROGRAM, program, case, owner=f"rank {rank}")
    except ProgramChanged as error:
        raise Wrong(error.what, why=error.why, next=error.next) from None
    return run


def require_calls(run: ClusterReplay, allowed: Sequence[str]) -> None:
    """Wrong where a rank calls a collective that the exercise is not about."""
    called = [name for name in COLLECTIVES if run.counts.get(name) and name not in allowed]
    if called:
        why = f"a rank calls {called[0]}; this exercise allows only {', '.join(allowed) or 'sends and receives'}"
        then = "use only the calls that the text describes"
        raise Wrong("your program uses a collective that this exercise does not allow", why=why, next=then)


def require_end(run: ClusterReplay) -> None:
    """Wrong where some ranks wait for ever, with who waits for whom."""
    if run.hang is not None:
        raise Wrong("the ranks wait for each other forever", why=f"{run.hang.what}; {run.hang.why}", next=run.hang.next)
