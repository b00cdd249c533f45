"""Mistakes about layouts: what each would give in place of a part's right price, or as the choice, and its sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FREE = 1e40  # per second: what computes or moves at this rate costs nothing
_FEW = 1e-15  # tokens: too few to count, and no division by zero
CLOSEST = 1e-12  # what free things still cost, in seconds or rounds
# A part: the function that is asked, and what it is in words.
PARTS: dict[str, tuple[str, str]] = {
    "state": ("bytes", "weights, gradients and optimizer"),
    "activations": ("bytes", "activations"),
    "computing": ("seconds", "computing at full rate, with the bubble"),
    "reading": ("seconds", "products that wait for memory"),
    "split sums": ("seconds", "sums of split blocks"),
    "hand-overs": ("seconds", "hand-overs between stages"),
    "data sums": ("seconds", "what replicas send"),
    "rounds": ("seconds", "messages of split blocks that follow one another"),
    "hiding": ("seconds", "data sums beside computing"),
}


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


_IN_SLOTS = ("computing", "reading", "hand-overs", "split sums", "rounds")
_Slip = Callable[[Any, str, Any, float], float]
_ALL = "in all layouts of all cases, and all else is right"


def _times(parts: str, factor: Callable[[Any, Any], float]) -> _Slip:
    """The right price times a factor of job and layout, in these parts."""
    names = parts.split(", ")
    return lambda job, part, layout, right: right * factor(job, layout) if part in names else right


def _slots(job: Any, layout: Any) -> float:
    return layout["micro_batches"] / (layout["micro_batches"] + layout["pp"] - 1)


def _if_again(factor: float) -> Callable[[Any, Any], float]:
    return lambda job, layout: factor if layout["recompute"] else 1.0


def _faster_inside(job: Any, span: int, assumed: int) -> float:
    """The seconds on the links that a group of `assumed` ranks would have, over those that it has."""
    inside, between = (job[where]["byte_per_s"] for where in ("inside", "between"))
    rates = [inside if count <= job["gpus_per_node"] else between for count in (span, assumed)]
    return rates[0] / rates[1]


def _of_the_whole(job: Any, layout: Any) -> float:
    """The seconds of products read as if no GPU had a part of them, over the right ones."""
    tokens, hidden = layout["micro"] * job["sequence"], job["hidden"]
    here, whole = 4 * hidden / layout["tp"], 4 * hidden
    share = [tokens * hidden * width / (tokens * hidden + hidden * width + tokens * width) for width in (here, whole)]
    return share[0] / share[1]


def _in_flight(count: Callable[[Any], int]) -> _Slip:
    def slip(job: Any, part: str, layout: Any, right: float) -> float:
        if part != "activations":
            return right
        vector = layout["micro"] * job["sequence"] * job["hidden"]
        open_block = 34 * vector / layout["tp"] if layout["recompute"] else 0.0
        return (right - open_block) * count(layout) / min(layout["micro_batches"], layout["pp"]) + open_block

    return slip


def _no_open_block(job: Any, part: str, layout: Any, right: float) -> float:
    vector = layout["micro"] * job["sequence"] * job["hidden"]
    return right - (34 * vector / layout["tp"] if part == "activations" and layout["recompute"] else 0.0)


def _inputs_split_too(job: Any, part: str, layout: Any, right: float) -> float:
    if part != "activations" or not layout["recompute"]:
        return right
    open_block = 34 * layout["micro"] * job["sequence"] * job["hidden"] / layout["tp"]
    return (right - open_block) / layout["tp"] + open_block


def _one_slot_more(job: Any, part: str, layout: Any, right: float) -> float:
    slots = layout["micro_batches"] + layout["pp"] - 1
    if part == "hiding":
        return right + _computed_s(job, layout)
    return right * (slots + 1) / slots if part in _IN_SLOTS else right


def _read_alone(job: Any, layout: Any) -> float:
    """What is read, over what is read and written."""
    tokens, hidden = layout["micro"] * job["sequence"], job["hidden"]
    width = 4 * hidden / layout["tp"]
    return (tokens * hidden + hidden * width) / (tokens * hidden + hidden * width + tokens * width)


def _open_block_alone(job: Any, part: str, layout: Any, right: float) -> float:
    return right - _no_open_block(job, part, layout, right) if part == "activations" and layout["recompute"] else right


def _both_again(job: Any, part: str, layout: Any, right: float) -> float:
    once = {"computing": 3 / 4, "reading": 3 / 4, "split sums": 2 / 3, "rounds": 2 / 3}.get(part, 1.0)
    return right * once if layout["recompute"] else right


def _computed_s(job: Any, layout: Any) -> float:
    """Of one micro-batch at full rate, on GPUs that each have the whole model."""
    return 6 * job["blocks"] * job["block_parameters"] * layout["micro"] * job["sequence"] / job["flop_per_s"]


def _sent_s(job: Any, layout: Any) -> float:
    """Of a data sum, on such GPUs."""
    times = 3 * layout["micro_batches"] if layout["zero"] == 3 else 2
    size = 2 * job["blocks"] * job["block_parameters"] / layout["dp"]
    return times * (layout["dp"] - 1) * size / job["between"]["byte_per_s"]


def _hides(left: Callable[[Any, Any], float]) -> _Slip:
    def slip(job: Any, part: str, layout: Any, right: float) -> float:
        if part != "hiding":
            return right
        return layout["micro_batches"] * _computed_s(job, layout) + left(job, layout)

    return slip


def _no_data_sums(job: Any, part: str, layout: Any, right: float) -> float:
    return 0.0 if part == "data sums" else _hides(lambda job, layout: 0.0)(job, part, layout, right)


def _left_of_all(job: Any, layout: Any) -> float:
    return max(0.0, _sent_s(job, layout) - layout["micro_batches"] * _computed_s(job, layout))


SLIPS: tuple[tuple[_Slip, str, str, str], ...] = (
    (
        _times("computing, reading, hand-overs", _slots),
        "the bubble is left out",
        f"a step has one slot for each micro-batch {_ALL}",
        "how many slots go by until the last stage has the last micro-batch?",
    ),
    (
        _times("split sums", lambda job, one: _faster_inside(job, one["tp"], 1)),
        "blocks that are split over several nodes are summed over the slow links",
        f"they were priced on the links inside {_ALL}",
        "how many GPUs has a node?",
    ),
    (
        lambda job, part, layout, right: 0.0 if part == "reading" else right,
        "memory is taken to be fast enough for any product",
        f"memory_byte_per_s makes no difference {_ALL}",
        "a split product has a lower arithmetic intensity: which rate does it reach?",
    ),
    (
        _times("reading", _of_the_whole),
        "the intensity is that of the whole product",
        f"tp makes no difference to it {_ALL}",
        "each GPU reads its own part of the matrix, and all of the input",
    ),
    (
        _in_flight(lambda layout: 1),
        "several micro-batches are in flight in a pipeline",
        f"the activations of one were counted {_ALL}",
        "what has the first stage passed on when the first gradient comes back?",
    ),
    (
        _in_flight(lambda layout: layout["micro_batches"]),
        "1F1B holds no more micro-batches than there are stages",
        f"the activations of all of them were counted {_ALL}",
        "that would be GPipe",
    ),
    (
        _in_flight(lambda layout: layout["pp"]),
        "no more micro-batches are in flight than there are",
        f"the activations of pp of them were counted {_ALL}",
        "with fewer micro-batches than stages, how many does the first stage keep?",
    ),
    (
        _inputs_split_too,
        "the inputs that recomputation keeps are whole on every GPU",
        f"they were divided by tp {_ALL}",
        "what a block's GPUs share is what is inside it",
    ),
    (
        _one_slot_more,
        "a step has one slot too many",
        f"micro_batches + pp of them were counted {_ALL}",
        "the last micro-batch has pp - 1 stages before it when the first one is through",
    ),
    (
        _times("reading", _read_alone),
        "what a product gives is written, too",
        f"the bytes that are read were counted alone {_ALL}",
        "two matrices in, one out",
    ),
    (
        _times("rounds", lambda job, one: 1 / (2 * (one["tp"] - 1)) if one["tp"] > 1 else 1.0),
        "every round costs α",
        f"α was paid once for a whole sum {_ALL}",
        "a ring of P has 2 (P - 1) rounds, one after the other",
    ),
    (
        _times("state", lambda job, one: (4 / one["dp"] + 12) / (4 + 12 / one["dp"]) if one["zero"] == 1 else 1.0),
        "stage 1 shards the optimizer's 12 bytes",
        f"it sharded the other 4 and kept those whole {_ALL}",
        "weights and gradients stay whole",
    ),
    (
        _no_open_block,
        "a block that is recomputed has its activations again",
        f"inputs alone were counted {_ALL}",
        "what is there while its backward pass runs?",
    ),
    (
        _open_block_alone,
        "recomputation keeps the inputs of blocks",
        f"one block's activations were counted {_ALL}",
        "from what would a block be computed again?",
    ),
    (
        _both_again,
        "recomputation costs a second forward pass",
        f"its time is that of a step without it {_ALL}",
        "8 FLOPs for 6, and 6 sums of a block for 4",
    ),
    (
        _times("computing, reading", _if_again(0.75)),
        "recomputation computes the forward pass twice",
        f"its products take as long as without it {_ALL}",
        "8 FLOPs a parameter and token for 6",
    ),
    (
        _times("split sums, rounds", _if_again(2 / 3)),
        "recomputation sums a block's outputs once more",
        f"4 sums were counted with it, too {_ALL}",
        "its forward pass runs again, with all it sends",
    ),
    (
        _times("state", lambda job, one: 1 / one["tp"] / one["pp"] if one["zero"] == 3 else 1.0),
        "state is sharded over the replicas alone",
        f"stage 3 was divided by all GPUs once more {_ALL}",
        "this GPU's part is divided by tp and pp already",
    ),
    (
        _times("state", lambda job, one: float(one["dp"]) if one["zero"] == 3 else 1.0),
        "stage 3 of ZeRO shards all of the state",
        f"it was counted whole {_ALL}",
        "16 bytes a parameter, over dp",
    ),
    (
        _times("data sums", lambda job, one: float(one["tp"] * one["pp"])),
        "replicas send their own part of the gradients",
        f"those of the whole model were sent {_ALL}",
        "how many parameters has this GPU?",
    ),
    (
        _times("data sums", lambda job, one: _faster_inside(job, one["tp"] * one["dp"], one["dp"])),
        "replicas of split blocks lie further apart",
        f"their links were chosen by dp alone {_ALL}",
        "a group of replicas spans tp * dp GPUs",
    ),
    (
        _times("data sums", lambda job, one: _faster_inside(job, one["tp"] * one["dp"], 1)),
        "replicas on several nodes send over the slow links",
        f"they were priced on the links inside {_ALL}",
        "how many GPUs does a group of replicas span?",
    ),
    (
        _times("hand-overs", lambda job, one: 0.5),
        "gradients go back through the pipeline",
        f"one message a slot was counted {_ALL}",
        "activations forward, their gradients back",
    ),
    (
        _times("hand-overs", lambda job, one: _faster_inside(job, 10**9, 1)),
        "the pipeline crosses nodes",
        f"its messages were priced on the links inside {_ALL}",
        "its stages span all GPUs",
    ),
    (
        _hides(_sent_s),
        "data sums run beside computing",
        f"all of their seconds were added {_ALL}",
        "what is left of them?",
    ),
    (
        _hides(_left_of_all),
        "gradients are whole in the last micro-batch alone",
        f"data sums hide behind all micro-batches {_ALL}",
        "stages 0 and 1 have one micro-batch to hide behind",
    ),
    (
        _no_data_sums,
        "what computing does not cover is waited for",
        f"data sums cost nothing {_ALL}",
        "how much longer do they take?",
    ),
)


def _if_it_fits(score: Callable[[Any, Any, float], float]) -> Callable[[Any, Any, float, float], float]:
    return lambda job, layout, held, took: score(job, layout, took) if held <= job["memory_bytes"] else 0.0


def _all_sequences(layout: Any) -> int:
    return layout["dp"] * layout["micro"] * layout["micro_batches"]


# By which a choice was made in all cases: the layout with the most of it.
CHOICES: tuple[tuple[Callable[[Any, Any, float, float], float], str, str, str], ...] = (
    (
        lambda job, layout, held, took: min(_all_sequences(layout), job["useful_sequences"]) / took,
        "the choice takes no notice of memory",
        "it is the fastest of all layouts in all cases, and does not fit",
        "leave out what needs more than memory_bytes",
    ),
    (
        _if_it_fits(lambda job, layout, took: _all_sequences(layout) / took),
        "sequences beyond the useful ones were counted",
        "the choice has the most sequences a second in all cases, useful or not",
        "a step with more than useful_sequences is no better, and takes longer",
    ),
    (
        _if_it_fits(lambda job, layout, took: 1 / took),
        "the shortest step is not the fastest training",
        "the choice has the shortest step in all cases",
        "how many useful sequences are in it?",
    ),
)
