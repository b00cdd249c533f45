"""What is wrong with `issue`, found from its work on two plans, and what the plans of all cases share."""

from __future__ import annotations

from typing import Any

from edl_labs.errors import Wrong

TRIED = (
    ("offload", "keep", "offload", "keep", "keep"),
    ("recompute", "keep", "recompute", "keep", "keep"),
)
_MANY = 2  # slow plans beside that of a budget with room, from which on it is a habit
_ROOM = 0.999  # of a budget: who stays below it in every case did not use it


def issue_mistake(programs: list[Any]) -> Wrong | None:
    """What `issue` does wrongly by the plans TRIED; None where it does them, or what it does is not known."""
    try:
        copied, again = ([(entry["op"], entry["layer"]) for entry in one] for one in programs)
        kept = {entry["layer"] for entry in programs[1] if entry["op"] == "forward" and entry["keep"]}
    except (TypeError, KeyError, ValueError):
        return None
    return _copy_mistake(copied) or _second_run_mistake(again, kept)


def _at(done: list[Any], op: str, layer: int) -> int:
    """The place of an operation; behind all others where it was not issued."""
    return done.index((op, layer)) if (op, layer) in done else len(done)


def _copy_mistake(done: list[Any]) -> Wrong | None:
    tried = f"with the plan {list(TRIED[0])}, "
    if _at(done, "offload", 0) < _at(done, "forward", 1):
        why = f"{tried}layer 0 is copied to the host before layer 1 has run"
        return Wrong(
            "your code copies a layer out before the next layer has read it",
            why=why,
            next="call offload(i) after forward(i + 1)",
        )
    if _at(done, "forward", 4) < _at(done, "offload", 0) < len(done):
        why = f"{tried}the copy of layer 0 begins after all forward passes, so its bytes are in memory at the peak"
        return Wrong(
            "your copies begin only after the whole forward pass",
            why=why,
            next="call offload(i) once layer i + 1 has run",
        )
    if ("fetch", 2) not in done and ("offload", 2) in done and _at(done, "backward", 4) < len(done):
        why = f"{tried}layer 2 was not back when layer 3, which reads its output, ran backward"
        return Wrong(
            "your code fetches a layer only for its own backward pass",
            why=why,
            next="which pass is the first to read layer i?",
        )
    if _at(done, "fetch", 0) < _at(done, "backward", 4):
        why = f"{tried}layer 0 was fetched before the first backward pass, but layer 1 reads it only three passes later"
        then = "fetch each layer one pass before the pass that reads it: until then, its memory is free"
        return Wrong("your code fetches everything at once", why=why, next=then)
    if _at(done, "backward", 4) < _at(done, "fetch", 2) < len(done):
        why = f"{tried}layer 2 was fetched right before layer 3 ran backward, so that pass had to wait for it"
        then = "start each fetch one pass earlier: that pass then hides the copy"
        return Wrong("your code starts fetches only when their data are needed", why=why, next=then)
    return None


def _second_run_mistake(done: list[Any], kept: set[int]) -> Wrong | None:
    tried = f"with the plan {list(TRIED[1])}, "
    if {("drop", 0), ("drop", 2)} & set(done) and {0, 2} & kept:
        why = (
            f"{tried}layer {min({0, 2} & kept)} kept everything and was then dropped, with the output that others read"
        )
        return Wrong(
            "your code drops the output of a layer that runs again",
            why=why,
            next="call forward(i, keep=False), which keeps only the output",
        )
    if _at(done, "recompute", 0) < _at(done, "backward", 1):
        why = (
            f"{tried}layer 0 ran again before layer 1 had run backward, so layers 0 and 2 held their activations at "
            "the same time"
        )
        return Wrong(
            "your code runs layers again too early", why=why, next="call recompute(i) right before backward(i)"
        )
    return None


def raise_mistake(program: list[Any]) -> Wrong | None:
    """What the operations until an exception show."""
    done = [(entry["op"], entry["layer"]) for entry in program]
    if done and done[-1] == ("backward", 0):
        why = "after a whole step on it, your code began another one"
        then = "create a separate tape for each plan: VirtualTape(step.tape)"
        return Wrong("your code tries out plans on the step itself", why=why, next=then)
    return None


def plan_of(program: Any, layers: int) -> list[str]:
    """The word for each layer that a step shows."""
    words = {(entry["op"], entry["layer"]) for entry in program}
    return [next((word for word in ("offload", "recompute") if (word, i) in words), "keep") for i in range(layers)]


def plan_habit(cases: list[Any], plans: list[list[str]], peaks: list[int], right: list[bool]) -> Wrong | None:
    """What all plans have in common, where all fit and some are not the best."""
    if any(peak > case["budget_bytes"] for peak, case in zip(peaks, cases, strict=True)):
        return None
    mixed = [set(plan) for plan in plans]
    if all(len(words) == 1 for words in mixed):
        why = "in every plan, all layers have the same word"
        then = "let each layer have its own word, which gives 243 plans"
        return Wrong("your plans give all layers the same word", why=why, next=then)
    whole = [sum(layer["activation_bytes"] for layer in case["layers"]) for case in cases]
    roomy = [words for words, case, held in zip(mixed, cases, whole, strict=True) if held <= case["budget_bytes"]]
    late = right.count(False) - len(roomy)
    below = late >= _MANY and all(peak < _ROOM * case["budget_bytes"] for peak, case in zip(peaks, cases, strict=True))
    if below and roomy and all(words != {"keep"} for words in roomy):
        why = "every plan stays below its budget, and saves bytes even if everything fits"
        return Wrong(
            "your code minimises memory instead of time",
            why=why,
            next="choose the fastest of the plans that fit",
        )
    if all("recompute" not in words or words == {"recompute"} for words in mixed):
        then = "try plans that recompute layers with many bytes and little work, and copy others"
        why = "none of your plans mixes 'recompute' with a different word"
        return Wrong("your plans never run individual layers again", why=why, next=then)
    if all("offload" not in words or words == {"offload"} for words in mixed):
        why = (
            "none of your plans mixes 'offload' with a different word: either your code does not try such plans, or "
            "it returns "
            "the first one that fits"
        )
        then = "try all three words for each layer, and choose the fastest of all plans that fit"
        return Wrong("your plans never copy individual layers out", why=why, next=then)
    return None
