"""layout: a transformer's training step placed on nodes of GPUs, priced by rules of its own, and the best that fits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_count, byte_rate, seconds

_FREE = 1e40  # per second: what computes or moves at this rate costs nothing
_FEW = 1e-15  # tokens: too few to count, and no division by zero
_CLOSEST = 1e-12  # what free things still cost, in seconds or rounds
# A part: the function that is asked, and what it is in words.
PARTS: dict[str, tuple[str, str]] = {
    "state": ("bytes", "weights, gradients and optimizer"),
    "activations": ("bytes", "activations"),
    "computing": ("seconds", "computing at the full rate, including the bubble"),
    "reading": ("seconds", "products that are limited by memory"),
    "split sums": ("seconds", "sums of split blocks"),
    "hand-overs": ("seconds", "messages between stages"),
    "data sums": ("seconds", "sums over the replicas"),
    "rounds": ("seconds", "consecutive messages of split blocks"),
    "hiding": ("seconds", "the overlap of data sums and computing"),
}
WITHIN = 0.97  # of the most useful sequences a second, promised in the text
_SHOWN = {"bytes": byte_count, "seconds": seconds}
CHOICE = ("dp", "tp", "pp", "micro", "micro_batches", "zero", "recompute")
_EVERY = 7  # of many layouts, a part is asked for each seventh: prime, so that every setting is among them


def every_layout(job: Any) -> Iterator[dict[str, Any]]:
    """All requested layouts."""
    gpus = job["nodes"] * job["gpus_per_node"]
    powers = [1 << at for at in range(gpus.bit_length()) if gpus % (1 << at) == 0]
    for dp, tp in itertools.product(powers, powers):
        if dp * tp <= gpus:
            rest = itertools.product((1, 4), (1, 4, 16), (0, 1, 3), (False, True))
            yield from (dict(zip(CHOICE, (dp, tp, gpus // dp // tp, *one), strict=True)) for one in rest)


def sequences(layout: Any) -> int:
    """In a step."""
    return layout["dp"] * layout["micro"] * layout["micro_batches"]


def priced_alone(job: Any, part: str) -> Any:
    """The same job where all but one part is free."""
    links = {where: {"alpha_s": 0.0, "byte_per_s": job[where]["byte_per_s"]} for where in ("inside", "between")}
    free = {where: {"alpha_s": float(part == "rounds"), "byte_per_s": _FREE} for where in links}
    idle: dict[str, Any] = {"flop_per_s": _FREE, "memory_byte_per_s": _FREE**2}
    changed: dict[str, dict[str, Any]] = {
        "state": {"sequence": _FEW},
        "activations": {"block_parameters": 0},
        "computing": {**free, "memory_byte_per_s": _FREE},
        "reading": {**free, "flop_per_s": _FREE},
        "split sums": {**links, **idle, "block_parameters": 0},
        "hand-overs": {**links, **idle, "block_parameters": 0},
        "data sums": {**links, **idle, "sequence": _FEW},
        "rounds": {**free, **idle},
        "hiding": {"inside": links["between"], "between": links["between"], "memory_byte_per_s": _FREE},
    }
    return {**job, "inside": {**job["inside"]}, "between": {**job["between"]}, **changed[part]}


@exercise("layout")
class LayoutOfAJob(Exercise):
    """Bytes and seconds of any layout of a training step, and the one with the most useful sequences a second.

    `layout_bytes(job, layout)` and `layout_s(job, layout)` price one, `place(job)` gives a layout. The evidence has the
    prices of all layouts, those of some with all but one part for nothing, and the choice.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        every = list(every_layout(given))
        functions = {"bytes": student.layout_bytes, "seconds": student.layout_s}
        parts = {
            part: [functions[unit](priced_alone(given, part), {**one}) for one in asked_of(given, part)]
            for part, (unit, _) in PARTS.items()
        }
        prices = {unit: [function(_copied(given), {**one}) for one in every] for unit, function in functions.items()}
        return {"parts": parts, **prices, "chosen": student.place(_copied(given))}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for part in PARTS:
            for layout, found, right in zip(asked_of(case, part), got["parts"][part], want["parts"][part], strict=True):
                if not close(found, right, atol=_CLOSEST):
                    priced = ", where every message takes 1 s" * (part == "rounds")
                    why = f"for this part alone{priced}, got {found:.4g} {PARTS[part][0]}, expected {right:.4g}, "
                    why += f"with {_named(layout)}"
                    raise Wrong(f"one part of your price is wrong: {PARTS[part][1]}", why=why, next=_NEXT[part])
        for unit in ("bytes", "seconds"):
            for layout, found, right in zip(every_layout(case), got[unit], want[unit], strict=True):
                if not close(found, right):
                    mine, due = (_SHOWN[unit](one, digits=4) for one in (found, right))
                    why = f"got {mine}, expected {due}, for {_named(layout)}; "
                    why += "in simpler layouts, each part alone is right"
                    then = _together(layout, less=found < right)
                    raise Wrong("your price combines its parts wrongly", why=why, next=then)
        self._judge_choice(case, got["chosen"], want)

    def _judge_choice(self, case: Any, chosen: Any, want: Any) -> None:
        every = list(every_layout(case))
        if chosen not in every:
            then = "return one of every_layout(job)"
            raise Wrong("your result is not a layout of this job", why=f"place() returned {_named(chosen)}", next=then)
        held = want["bytes"][every.index(chosen)]
        if held > case["memory_bytes"]:
            why = f"{_named(chosen)} needs {byte_count(held)}, but a GPU has {byte_count(case['memory_bytes'])}"
            then = "leave out layouts that need more than `memory_bytes`"
            raise Wrong("your layout does not fit into memory", why=why, next=then)
        rates = useful_rates(case, want)
        best = max(rate for rate, held in zip(rates, want["bytes"], strict=True) if held <= case["memory_bytes"])
        if rates[every.index(chosen)] < WITHIN * best:
            share = f"{rates[every.index(chosen)] / best:.0%}"
            why = f"with {_named(chosen)}, the useful sequences per second are {share} of those with the best layout"
            then = "compute the useful sequences per second of each layout that fits, and compare"
            raise Wrong("your function does not choose the fastest layout that fits", why=why, next=then)

    def format_answer(self, case: Any, got: Any) -> str:
        """The choice, with its price."""
        every = list(every_layout(case))
        if got["chosen"] not in every:
            return _named(got["chosen"])
        at = every.index(got["chosen"])
        return f"{_named(every[at])}: {byte_count(got['bytes'][at])}, {seconds(got['seconds'][at])} per step"

    def format_case(self, case: Any) -> str:
        """The model and the cluster."""
        links = "; ".join(
            f"{where} {seconds(case[where]['alpha_s'])} and {byte_rate(case[where]['byte_per_s'])}"
            for where in ("inside", "between")
        )
        return (
            f"{case['blocks']} blocks of width {case['hidden']}, {case['sequence']} tokens, up to "
            f"{case['useful_sequences']} useful sequences; {case['nodes']} x {case['gpus_per_node']} GPUs of "
            f"{byte_count(case['memory_bytes'])}, {case['flop_per_s']:.3g} FLOP/s, "
            f"{byte_rate(case['memory_byte_per_s'])}; {links}"
        )


_NEXT = {
    "state": "count 16 bytes per parameter of this GPU's part: which of these bytes does the ZeRO stage divide by dp?",
    "activations": "how many micro-batches are in flight, and how many blocks keep activations for each of them?",
    "computing": "count one slot for each micro-batch, and add the slots of the bubble",
    "reading": "use the smaller of the two rates, and only this GPU's part of the product",
    "split sums": "how many all-reduces are there, of how many bytes, and over which links?",
    "hand-overs": "count one message forward and one backward in each slot",
    "data sums": "how many bytes of gradients and weights are sent, how often, and over which links?",
    "rounds": "how many messages are sent one after the other?",
    "hiding": "which part of the data sums does the computation not hide?",
}


def _together(layout: Any, *, less: bool) -> str:
    """What to look at where parts alone are right: they were asked with one stage, or without replicas."""
    if layout["pp"] > 1 and layout["zero"] == 3 and layout["dp"] > 1 and less:
        return "let only the computation of `micro_batches` slots hide data sums: the bubble hides nothing"
    if layout["pp"] > 1 and layout["tp"] > 1 and not less:
        return "count only the sums of a stage's own `blocks / pp` blocks: with a single stage, your sums are right"
    return "which part hides which other part, and how often does each part occur in a step?"


def asked_of(case: Any, part: str) -> list[dict[str, Any]]:
    """Layouts where a part is asked alone: without what would send over the same links, or change what is hidden."""
    plain = {"pp": 1, "dp": 1, "tp": 1, "recompute": False}
    without = {
        "split sums": ("pp",),
        "rounds": ("pp", "dp"),
        "hand-overs": ("tp",),
        "hiding": ("tp", "pp", "recompute"),
    }.get(part, ())
    found = [one for one in every_layout(case) if all(one[name] == plain[name] for name in without)]
    return found[:: _EVERY if len(found) > 100 else 1]


def useful_rates(case: Any, want: Any) -> list[float]:
    """Useful sequences a second of every layout."""
    both = zip(every_layout(case), want["seconds"], strict=True)
    return [min(sequences(layout), case["useful_sequences"]) / took for layout, took in both]


def _copied(job: Any) -> Any:
    return {**job, "inside": {**job["inside"]}, "between": {**job["between"]}}


def _named(layout: Any) -> str:
    return ", ".join(f"{name} {value}" for name, value in layout.items())
