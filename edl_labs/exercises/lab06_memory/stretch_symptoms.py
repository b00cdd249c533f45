"""What is wrong with `run_step` or with the stretches that `place` gives, told from what they did."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import Wrong

TRIED = ((0, 2), (3, 5))  # two stretches that any chain of six layers has, each with a layer behind it
_MANY = 3  # stretches from which on it is a habit that each has one layer


def stretches_text(placed: Any) -> str:
    """The stretches as JSON; `null` where none came, and empty where they are no pairs of whole numbers."""
    if placed is None:
        return "null"
    with suppress(Exception):
        return json.dumps([[int(start), int(stop)] for start, stop in placed])
    return ""


def placed_mistake(text: str) -> Wrong | None:
    """What is wrong with the form of the stretches."""
    if text == "null":
        then = "which ways were not tried? Stretches of several layers, and several stretches, with other layers kept"
        return Wrong("place found no stretches", why="some way fits every budget", next=then)
    if text:
        return None
    why = "a stretch is a pair: its first layer, and the layer behind its last one"
    return Wrong("what place gives are no stretches", why=why, next="return a list of (start, stop)")


def step_mistake(program: list[Any]) -> Wrong | None:
    """What `run_step` does wrongly with the stretches TRIED, from its operations on a chain, as far as it came."""
    try:
        done = [(entry["op"], entry["layer"]) for entry in program]
        whole = {entry["layer"] for entry in program if entry["op"] == "forward" and entry["keep"]}
        first = next((at for at, (op, _) in enumerate(done) if op == "backward"), len(done))
        gone = {entry["layer"] for entry in program[:first] if entry["op"] == "drop" and not entry["keep_output"]}
    except (TypeError, KeyError):
        return None
    inside = {i for stretch in TRIED for i in range(*stretch)}
    behind = [stop for _, stop in TRIED if ("forward", stop) in done]
    tried = f"with the stretches {list(TRIED)}, "
    if behind and not whole & (inside | set(behind)):
        why = f"{tried}layers {' and '.join(map(str, behind))} were run again too; they lie behind a stretch"
        then = "(start, stop) is range(start, stop): the layer `stop` is kept"
        return Wrong("the layer behind a stretch was taken for one of it", why=why, next=then)
    ends = [stop - 1 for _, stop in TRIED if stop - 1 in gone]
    if ends:
        why = f"{tried}the output of layer {ends[0]} was dropped; the layer behind it reads it in its backward pass"
        return Wrong("the output of a stretch's last layer was let go", why=why, next="drop those before it alone")
    again = [layer for op, layer in done if op == "recompute"]
    if again and not gone & inside:
        then = "only the output of a stretch's last layer is needed before the stretch runs again"
        why = f"{tried}layers {', '.join(str(i) for i in sorted(inside))} hold outputs until the backward pass"
        return Wrong("outputs inside a stretch are never let go", why=why, next=then)
    early = [
        start
        for start, stop in TRIED
        if start in again and ("backward", stop) not in done[: done.index(("recompute", start))]
    ]
    if early:
        then = "run a stretch again just before the backward pass of its own last layer"
        why = f"{tried}layer {early[0]} ran again while layers behind its stretch had not run backward"
        return Wrong("stretches run again before it is their turn", why=why, next=then)
    return None


@dataclass(frozen=True)
class Placed:
    """One case's placement: what ran again, what it held, how many second runs fewer than the best step it has."""

    case: Any
    stretches: list[Any]
    is_right: bool
    is_late: bool  # the step is as it should be, but for the time that it takes
    peak_bytes: int
    fewer_again: int


def placement_habit(placed: list[Placed]) -> Wrong | None:
    """What all placements have in common that explains those that are wrong; None where nothing does."""
    lengths = {stop - start for one in placed for start, stop in one.stretches}
    if lengths == {1} and sum(len(one.stretches) for one in placed) >= _MANY:
        then = "inside a longer stretch outputs go too: it holds less while it waits"
        return Wrong("only stretches of one layer were tried", why="no stretch of any answer has two layers", next=then)
    if all(one.peak_bytes == one.case["least_bytes"] for one in placed):
        why = "every answer has the lowest peak of all ways, also where the budget has room for more"
        then = "of the ways that fit, take the one of the least time"
        return Wrong("the smallest peak was looked for, not the least time", why=why, next=then)
    if all(one.is_right or not _is_proportional(one.case) for one in placed):
        why = "all answers are right where backward passes take twice their forward passes, but not elsewhere"
        then = "a backward pass runs once, with stretches and without: only forward passes run again"
        return Wrong("seconds of backward passes were counted", why=why, next=then)
    if lengths and all(len(one.stretches) < 2 for one in placed):
        why = "no answer has two stretches"
        return Wrong("only a single stretch was tried", why=why, next="several may run again, with kept layers between")
    if all(one.is_right or one.is_late for one in placed) and all(one.fewer_again >= 0 for one in placed):
        why = "no answer runs more layers again than the best step, and those that are wrong take longer"
        then = "add up the forward seconds of what runs again"
        return Wrong("the fewest layers run again, not the fewest seconds", why=why, next=then)
    return None


def _is_proportional(case: Any) -> bool:
    """Whether every backward pass takes twice as long as its forward pass."""
    return all(abs(layer["backward_s"] - 2 * layer["forward_s"]) < 1e-9 for layer in case["layers"])
