"""What is wrong with `run_step`, found from what it did, and with the form of what `place` gives."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from edl_labs.errors import Wrong

TRIED = ((0, 2), (3, 5))  # two stretches that any chain of six layers has, each with a layer behind it
_MOST_TEXT = 300  # characters of an exception: what, why and next of a VirtualTape


def stretches_text(placed: Any) -> str:
    """The stretches as JSON; `null` where none came, and empty where they are no pairs of whole numbers."""
    if placed is None:
        return "null"
    with suppress(Exception):
        return json.dumps([[int(start), int(stop)] for start, stop in placed])
    return ""


def placed_mistake(text: str, layers: int) -> Wrong | None:
    """What is wrong with the form of the stretches of so many layers."""
    if text == "null":
        then = "which ways were not tried? Stretches of several layers, and several stretches, with other layers kept"
        return Wrong("place found no stretches", why="some way fits every budget", next=then)
    if text:
        return _beyond(json.loads(text), layers)
    why = "a stretch is a pair: its first layer, and the layer after its last one"
    return Wrong("what place gives are no stretches", why=why, next="return a list of (start, stop)")


def _beyond(stretches: Any, layers: int) -> Wrong | None:
    """A stretch that begins before the first layer, ends behind the last one, or has none."""
    for start, stop in stretches:
        if not 0 <= start < stop <= layers:
            why = f"({start}, {stop}) of {layers} layers"
            then = "start is the first layer of the stretch, stop the layer after its last one, at most len(layers)"
            what = "a stretch has no layer" if start >= stop else "a stretch goes beyond the layers"
            return Wrong(what, why=why, next=then)
    return None


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
        why = f"{tried}layers {' and '.join(map(str, behind))} were run again too; they come after a stretch"
        then = "(start, stop) is range(start, stop): the layer `stop` is kept"
        return Wrong("the layer after a stretch was taken for one of it", why=why, next=then)
    ends = [stop - 1 for _, stop in TRIED if stop - 1 in gone]
    if ends:
        why = f"{tried}the output of layer {ends[0]} was dropped; the layer after it reads it in its backward pass"
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
        why = f"{tried}layer {early[0]} ran again while layers after its stretch had not run backward"
        return Wrong("stretches run again before it is their turn", why=why, next=then)
    return None


def raised_text(error: Exception) -> str:
    """An exception as evidence: its type, and its first line."""
    return f"{type(error).__name__}: {str(error).strip()[:_MOST_TEXT]}".rstrip(": ")


_GONE = re.compile(
    r"layer (?P<layer>\d+) \(.*?\) cannot run (?P<verb>\w+)\s+why:\s+(?P<whose>.*?)(?:'s)? "
    r"(?P<what>output|activations) (?:is|are) not there"
)


def gone_symptom(program: list[Any], raised: str, stretches: Any) -> Wrong | None:
    """What a pass misses that found nothing to read, and who let go of it; None where `raised` is something else."""
    found = _GONE.search(raised)
    if found is None:
        return None
    layer, verb = int(found["layer"]), found["verb"]
    missed = layer if found["whose"] == "its" else layer - 1
    try:
        done = [(entry["op"], entry["layer"], entry.get("keep")) for entry in program]
        inside = next((range(start, stop) for start, stop in stretches or () if layer in range(start, stop)), range(0))
    except (TypeError, KeyError, ValueError):
        return None
    last = next(((op, keep) for op, of, keep in reversed(done) if of == missed), ("", None))
    shown = f"with the stretches {[tuple(one) for one in stretches or ()]}, "
    who = {
        "drop": f"drop({missed}) let go of it",
        "backward": f"it went with backward({missed}), which has run already",
        "forward": f"forward({missed}, keep=False) left its output alone",
        "": f"layer {missed} has not run yet",
    }.get(last[0], f"{last[0]}({missed}) did not leave it")
    what = f"{verb}({layer}) needs what layer {missed} " + ("saves" if found["what"] == "activations" else "hands on")
    return Wrong(f"{what}, and that is gone", why=f"{shown}{who}", next=_kept_how(verb, layer, missed, inside))


def _kept_how(verb: str, layer: int, missed: int, inside: range) -> str:
    if verb == "forward":
        return f"drop({missed}) after layer {layer} has read it, not before"
    if missed == layer:
        return "a layer of a stretch runs again before its own backward pass"
    if missed in inside and verb == "recompute":
        return (
            f"a stretch runs again as a whole, from its first layer on: recompute({missed}) before recompute({layer})"
        )
    if missed in inside:
        return f"the whole stretch runs again before its first backward pass: layer {missed} too"
    return f"keep the output of layer {missed} until layer {layer} has run backward"
