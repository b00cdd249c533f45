"""Recorded kernels as evidence: written as text in the student's process, replayed by a judge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from edl_labs.errors import Wrong
from edl_labs.virtual import ReplayError
from edl_labs.virtual.case_program import CaseProgram, require_case
from edl_labs.virtual.errors import ProgramChanged
from edl_labs.virtual.warp import VirtualWarp, WarpRace, WarpReplay, replay_warp
from edl_labs.virtual.warp.program import PROGRAM

MAX_KERNEL_STEPS = 200_000  # of all threads: a replay of that many takes seconds, and no sound answer comes near


def written_kernels(gpu: VirtualWarp) -> str:
    """Everything that a machine recorded, as text."""
    return json.dumps(gpu.program, separators=(",", ":"))


def replayed_kernels(
    text: Any, arrays: Mapping[str, tuple[list[int], str]], values: Mapping[str, Any] | None = None, **options: Any
) -> WarpReplay:
    """The kernels in `text` on these arrays of the exercise, by name; Wrong where they are none."""
    try:
        program = json.loads(text)
        run = replay_warp(program, values, max_operations=MAX_KERNEL_STEPS, **options)
    except (TypeError, ValueError, RecursionError):
        why, then = "the record cannot be read", "use only the machine's own methods; do not change its record"
        raise Wrong("the recorded program is not a program of a VirtualWarp", why=why, next=then) from None
    except ReplayError as error:
        raise Wrong(
            "this machine does not allow the recorded program", why=f"{error.what}: {error.why}", next=error.next
        ) from None
    gpu = VirtualWarp()
    for name, (shape, dtype) in arrays.items():
        gpu.array(name, tuple(shape), dtype)
    try:
        require_case(PROGRAM, run.program, CaseProgram(gpu.program, own=("array",)))
    except ProgramChanged as error:
        raise Wrong(error.what, why=error.why, next=error.next) from None
    return run


def require_launch(run: WarpReplay) -> None:
    """Wrong where no kernel ran, or one of them never ends."""
    if not run.launches:
        why, then = (
            "your function ended without launching a kernel",
            "call gpu.launch(kernel, ..., grid=..., block=...)",
        )
        raise Wrong("no kernel was launched", why=why, next=then)
    if run.hangs:
        then = "call each barrier outside of branches, where every thread of the block reaches it"
        raise Wrong("threads wait for each other forever", why=run.hangs[0], next=then)


def require_whole_barriers(run: WarpReplay) -> None:
    """Wrong where threads of a block go past a barrier that others wait at."""
    if run.missed:
        then = "move the barrier out of the `if`: only the work between barriers may depend on the thread"
        raise Wrong("a barrier is not reached by every thread of its block", why=run.missed[0], next=then)


def require_order(run: WarpReplay) -> None:
    """Wrong where two threads meet at an element and nothing orders them."""
    if run.races:
        raise _told(run.races[0])


def _told(race: WarpRace) -> Wrong:
    ops = {race.first_op, race.second_op}
    if race.is_shared:
        then = "put a barrier between the write and the read, for all threads of the block"
        if "load" in ops:
            return Wrong("shared memory is read while another thread writes it", why=str(race), next=then)
        then = "let only one thread write each element"
        return Wrong("two threads write the same element of shared memory", why=str(race), next=then)
    if "load" in ops:
        then = "separate the read from the write: blocks of a launch do not wait for each other, but launches do"
        return Wrong("a thread reads memory that another thread writes in the same launch", why=str(race), next=then)
    then = "let only one thread write each element, or let all threads add atomically"
    return Wrong("several threads write the same element", why=str(race), next=then)
