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
        then = "try stretches of several layers, and several stretches, with the other layers kept"
        return Wrong("`place()` found no stretches", why="for every budget, some set of stretches fits", next=then)
    if text:
        return _beyond(json.loads(text), layers)
    why = "a stretch is a pair of its first layer and the layer after its last one"
    return Wrong("`place()` did not return stretches", why=why, next="return a list of (start, stop)")


def _beyond(stretches: Any, layers: int) -> Wrong | None:
    """A stretch that begins before the first layer, ends behind the last one, or has none."""
    for start, stop in stretches:
        if not 0 <= start < stop <= layers:
            why = f"got ({start}, {stop}) for {layers} layers"
            then = "let start be the first layer of the stretch, and stop the layer after its last, at most len(layers)"
            what = "a stretch contains no layer" if start >= stop else "a stretch goes beyond the layers"
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
        why = f"{tried}your code did not keep layers {' and '.join(map(str, behind))}, which come after a stretch"
        then = "keep the layer `stop`: (start, stop) means range(start, stop)"
        return Wrong("your code treats the layer after a stretch as part of the stretch", why=why, next=then)
    ends = [stop - 1 for _, stop in TRIED if stop - 1 in gone]
    if ends:
        why = f"{tried}the output of layer {ends[0]} was dropped, but the next layer reads it in its backward pass"
        return Wrong(
            "your code drops the output of a stretch's last layer",
            why=why,
            next="drop only the earlier outputs of the stretch",
        )
    again = [layer for op, layer in done if op == "recompute"]
    if again and not gone & inside:
        then = "drop the others: only the output of a stretch's last layer is needed before the stretch runs again"
        why = f"{tried}layers {', '.join(str(i) for i in sorted(inside))} hold outputs until the backward pass"
        return Wrong("your code never drops the outputs inside a stretch", why=why, next=then)
    early = [
        start
        for start, stop in TRIED
        if start in again and ("backward", stop) not in done[: done.index(("recompute", start))]
    ]
    if early:
        then = "run a stretch again just before the backward pass of its own last layer"
        why = f"{tried}layer {early[0]} ran again before the layers after its stretch had run backward"
        return Wrong("your code runs stretches again too early", why=why, next=then)
    return None


def raised_text(error: Exception) -> str:
    """An exception as evidence: its type, and its first line."""
    return f"{type(error).__name__}: {str(error).strip()[:_MOST_TEXT]}".rstrip(": ")


_GONE = re.compile(
    r"layer (?P<layer>\d+) \(.*?\) cannot run (?P<verb>\w+)\s+why:\s+(?P<whose>.*?)(?:'s)? "
    r"(?P<what>output|activations) (?:is|are) not in memory"
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
        "drop": f"drop({missed}) freed it",
        "backward": f"backward({missed}), which has already run, freed it",
        "forward": f"forward({missed}, keep=False) kept only its output",
        "": f"layer {missed} has not run yet",
    }.get(last[0], f"{last[0]}({missed}) did not keep it")
    what = "activations" if found["what"] == "activations" else "output"
    what = f"{verb}({layer}) cannot find the {what} of layer {missed} in memory"
    return Wrong(what, why=f"{shown}{who}", next=_kept_how(verb, layer, missed, inside))


def _kept_how(verb: str, layer: int, missed: int, inside: range) -> str:
    if verb == "forward":
        return f"call drop({missed}) only after layer {layer} has read it"
    if missed == layer:
        return "run each layer of a stretch again before its own backward pass"
    if missed in inside and verb == "recompute":
        return (
            f"run a stretch again as a whole, starting at its first layer: recompute({missed}) before "
            f"recompute({layer})"
        )
    if missed in inside:
        return f"run the whole stretch again before its first backward pass, including layer {missed}"
    return f"keep the output of layer {missed} until layer {layer} has run backward"
