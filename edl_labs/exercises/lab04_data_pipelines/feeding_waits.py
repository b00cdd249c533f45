"""The message about a right schedule that is too slow: waits of the host, and work that takes turns needlessly."""

from __future__ import annotations

from typing import Any

from edl_labs.errors import Wrong

ONE_WAIT = "let the host wait only for a slot's copy, and only just before it loads into that slot again"


def copies_of(program: Any) -> list[int]:
    """Where a program copies; its last copy is the check's own."""
    return [index for index, entry in enumerate(program) if entry["op"] == "copy"][:-1]


def host_waits(program: Any, slower: str) -> Wrong | None:
    """The host waits for most copies, or for all that the device does, before it loads the next batch."""
    copies = copies_of(program)
    half = len(copies) / 2
    if sum(not program[index]["non_blocking"] for index in copies) > half:
        why = (
            f"a copy without non_blocking=True blocks the host until it ends, so nothing is loaded meanwhile: {slower}"
        )
        return Wrong(
            "in your program, the host waits for each copy to end", why=why, next="copy with non_blocking=True"
        )
    ahead = [_awaited_before_loading(program, index) for index in copies]
    if sum("all" in kinds for kinds in ahead) > half:
        why = f"before it loads the next batch, it waits for everything that was launched: {slower}"
        return Wrong("in your program, the host waits for the device in every step", why=why, next=ONE_WAIT)
    if sum("copy" in kinds for kinds in ahead) > half:
        why = f"it starts the copy of batch i, waits for that copy to end, and only then loads batch i + 1: {slower}"
        return Wrong(
            "in your program, the host waits for each copy before it loads the next batch", why=why, next=ONE_WAIT
        )
    return None


def _awaited_before_loading(program: Any, copy: int) -> set[str]:
    """What the host waits for between a copy and the next load: "copy", this very one, and "all" that was launched."""
    found: set[str] = set()
    marks: set[int] = set()
    for entry in program[copy + 1 :]:
        op, is_there = entry["op"], entry.get("stream") == program[copy]["stream"]
        if op in ("host_work", "copy") or (op == "launch" and is_there):
            break
        if op == "record":
            marks = marks | {entry["event"]} if is_there else marks - {entry["event"]}
        if op == "synchronize":
            found.add("all")
        if (op == "sync_event" and entry["event"] in marks) or (op == "sync_stream" and is_there):
            found.add("copy")
    return found


def needless_order(program: Any, case: Any, slower: str) -> Wrong | None:
    """Steps and copies that take turns, by their stream or by an event that a copy need not wait for."""
    copies = copies_of(program)
    steps = [index for index, entry in enumerate(program) if entry["op"] == "launch"]
    if len({program[index]["stream"] for index in (*copies, *steps)}) == 1:
        then = "operations in one stream run one after another: use one stream for copies and another for steps"
        return Wrong("your steps and copies share a stream, so they never overlap", why=slower, next=then)
    if len(copies) != len(steps):
        return None
    late = [(number, _awaited_step(program, index)) for number, index in enumerate(copies)]
    odd = [(number, step) for number, step in late if step is not None and step > number - case["slots"]]
    if len(odd) > len(copies) / 2:
        number, step = odd[-1]
        why = f"the copy of batch {number} waits for the step of batch {step}, which uses another slot: {slower}"
        then = (
            f"wait only for the last step that used this buffer: with {case['slots']} slots, "
            f"that of batch {number - case['slots']}"
        )
        return Wrong("your copies wait for steps that use other buffers", why=why, next=then)
    return None


def _awaited_step(program: Any, copy: int) -> int | None:
    """The last step that the waits right before a copy, in its stream, are for."""
    begun = max((i for i in range(copy) if program[i]["op"] in ("copy", "launch", "host_work")), default=-1)
    # The wait may also stand before the batch is loaded.
    if begun >= 0 and program[begun]["op"] == "host_work":
        begun = max((i for i in range(begun) if program[i]["op"] in ("copy", "launch", "host_work")), default=-1)
    found = None
    for at in range(begun + 1, copy):
        entry = program[at]
        if entry["op"] == "wait" and entry["stream"] == program[copy]["stream"]:
            records = [i for i in range(at) if program[i]["op"] == "record" and program[i]["event"] == entry["event"]]
            if records:
                stream, before = program[records[-1]]["stream"], program[: records[-1]]
                ran = [i for i, one in enumerate(before) if one["op"] == "launch" and one["stream"] == stream]
                if ran:
                    step = sum(one["op"] == "launch" for one in program[: ran[-1]])
                    found = step if found is None else max(found, step)
    return found
