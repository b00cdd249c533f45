"""Loads that a student's policy serves on a VirtualServer, with a second future, and what a judge reads from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from edl_labs.errors import Wrong
from edl_labs.virtual.errors import ReplayError
from edl_labs.virtual.server import (
    Arrival,
    ServerMachine,
    ServerReplay,
    VirtualServer,
    decides_otherwise,
    replay_server,
    server_machine,
)

FORESEES = "one of your decisions depends on something that the server cannot know"
MAX_DECISIONS = 60_000  # of a load of some hundred requests: ten times what a sound policy takes


def machine_of(case: Any) -> ServerMachine:
    """The server of a case."""
    return server_machine(case["machine"])


def load_of(case: Any, future: str) -> list[Arrival]:
    """The requests of a case: those that come, and those that might have come instead ("load" or "fork")."""
    return [Arrival(*one) for one in case[future]]


def both_futures(case: Any, serve: Callable[[VirtualServer], object]) -> dict[str, str]:
    """What a policy decides when one load comes and when the other does, as text."""
    found = {}
    for future in ("load", "fork"):
        server = VirtualServer(machine_of(case), load_of(case, future))
        serve(server)
        found[future] = json.dumps(server.program, separators=(",", ":"))
    return found


def judged_futures(case: Any, got: Any) -> ServerReplay:
    """The replay of the load; Wrong where either is none, or where a decision foresees which of the two will come."""
    runs = [_replayed(case, got[future], future) for future in ("load", "fork")]
    index = decides_otherwise(*runs)
    if index is not None:
        told = [_told(run, index) for run in runs]
        raise Wrong(
            FORESEES,
            why="your code ran on two loads: the same requests had arrived, but "
            f"decision {index} was {told[0]} in one run and {told[1]} in the other",
            next="decide only by the time and by which requests wait and run; use no random numbers, and remember "
            "nothing from earlier calls",
        )
    return runs[0]


def _replayed(case: Any, text: Any, future: str) -> ServerReplay:
    try:
        return replay_server(json.loads(text), machine_of(case), load_of(case, future), max_operations=MAX_DECISIONS)
    except (TypeError, ValueError, RecursionError):
        why, then = "the record cannot be read", "use only the server's own calls, and do not change its record"
    except ReplayError as error:
        why, then = f"{error.what}: {error.why}", error.next
    raise Wrong("this server does not allow the recorded decisions", why=why, next=then)


def _told(run: ServerReplay, index: int) -> str:
    if index >= len(run.program):
        return "no decision"
    entry = run.program[index]
    what = f" {entry['request']}" if "request" in entry else ""
    return f"`{entry['op']}{what}`"


def steps_of(run: ServerReplay) -> list[list[int]]:
    """The requests that were admitted before each step, in their order."""
    found: list[list[int]] = [[]]
    for entry in run.program:
        if entry["op"] == "admit":
            found[-1].append(entry["request"])
        elif entry["op"] == "step":
            found.append([])
    return found[:-1]


def passing(run: ServerReplay) -> dict[int, list[int]]:
    """For each request those that came later and were admitted first."""
    order = list(dict.fromkeys(entry["request"] for entry in run.program if entry["op"] == "admit"))
    return {number: [other for other in order[:at] if other > number] for at, number in enumerate(order)}


def foreseen(cases: list[Any], got: list[Any]) -> Wrong | None:
    """What is wrong with the decisions of any case where they foresee, or draw lots."""
    for case, one in zip(cases, got, strict=True):
        try:
            judged_futures(case, one)
        except Wrong as wrong:
            if wrong.what == FORESEES:
                return wrong
    return None
