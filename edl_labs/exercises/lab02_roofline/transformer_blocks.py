"""count_a_model: the tensor contractions of a transformer block, forward and backward."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import say, two_numbers


@exercise("count_a_model")
class CountAModel:
    """FLOPs of a transformer block's contractions, forward and backward, from its shapes.

    `student.count_block(shape)` gives `(forward_flop, backward_flop)` within 1 %.
    """

    loose = True  # `two_numbers` names what is asked for

    def cases(self, rng: Any) -> list[Any]:
        plain = _shape(rng, gated=False, frozen=False, grouped=False)
        rest = [
            _shape(rng, gated=bool(i & 1), frozen=bool(i & 2), grouped=bool(i & 4)) for i in rng.permutation(8).tolist()
        ]
        return [plain, *rest, _shape(rng, gated=True, frozen=False, grouped=True)]

    def probe(self, student: Any, case: Any) -> Any:
        return student.count_block(dict(case))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        two_numbers(got, "forward_flop, backward_flop")
        if not close(got[0], want[0], rtol=0.01):
            raise _forward_mistake(case, got[0], want[0])
        if not close(got[1], want[1], rtol=0.01):
            raise _backward_mistake(case, got, want)

    def show(self, case: Any) -> str:
        return ", ".join(f"{name} {value}" for name, value in case.items())


def _shape(rng: Any, *, gated: bool, frozen: bool, grouped: bool) -> dict[str, Any]:
    """A block in which every part, the attention matrix too, is well above the tolerance of 1 %."""
    head, heads = int(rng.choice([32, 64])), int(rng.choice([4, 8, 12]))
    width = head * heads
    return {
        "batch": int(rng.integers(2, 33)),
        "tokens": int(rng.integers(width // 3, 2 * width)),
        "width": width,
        "heads": heads,
        "kv_heads": heads // 4 if grouped else heads,
        "hidden": int(rng.integers(2, 6)) * width,
        "gated": gated,
        "frozen": frozen,
    }


def _terms(case: Any) -> dict[str, float]:
    """Multiply-adds of each part, by which an answer that forgets it differs."""
    tokens, width = case["batch"] * case["tokens"], case["width"]
    grouped = case["kv_heads"] / case["heads"]
    return {
        "the query and output projections": 2.0 * tokens * width**2,
        "the key and value projections": 2.0 * tokens * width**2 * grouped,
        "the product of queries and keys, or that of weights and values": 1.0 * tokens * width * case["tokens"],
        "the attention itself": 2.0 * tokens * width * case["tokens"],
        "the feed-forward layers": (2.0 + case["gated"]) * tokens * width * case["hidden"],
        "the gate of the feed-forward layers": float(case["gated"]) * tokens * width * case["hidden"],
        "the output projection": 1.0 * tokens * width**2,
    }


def _forward_mistake(case: Any, got: float, want: float) -> Wrong:
    terms = _terms(case)
    attention = 2 * terms["the attention itself"]
    tokens = case["batch"] * case["tokens"]
    ungrouped = 4 * tokens * case["width"] ** 2 * (1 - case["kv_heads"] / case["heads"])
    known = [
        (0.5 * want, "a multiply-add was counted as one operation", "a·b + c: how many operations?"),
        (want / case["batch"], "the batch was left out", "every sequence of the batch is computed"),
        (want / tokens, "that is for one token", "the whole batch of sequences goes through the block"),
        (want + (case["heads"] - 1) * attention, "each head was given the full width", "the heads share the width"),
        (want - attention * (1 - 1 / case["heads"]), "one head alone was counted", "all heads work"),
        (want + (case["batch"] - 1) * attention, "tokens attend to other sequences", "attention stays inside one"),
        (want + ungrouped, "keys and values were given all heads", "kv_heads says how many there are"),
        (3 * want, "forward and backward were added up", "the forward pass alone comes first"),
    ]
    for value, what, then in known:
        if value != want and close(got, value, rtol=0.003):
            return Wrong(what, why=f"forward: {say(got / want)} times what it should be", next=then)
    for name, count in terms.items():
        if count and close(got, want - 2 * count, rtol=0.003):
            why = f"forward: {say(got / want)} times what it should be"
            return Wrong(f"{name} is missing", why=why, next="list the products of the listing above, one by one")
    return Wrong(
        "the forward pass is wrong",
        why=f"it is {say(got / want)} times what it should be",
        next="six or seven products; write m, k and n beside each, and 2·m·k·n",
    )


def _backward_mistake(case: Any, got: Any, want: Any) -> Wrong:
    ratio = got[1] / want[1]
    if case["frozen"] and close(got[1], 2 * want[0], rtol=0.003):
        what, then = "frozen weights were given gradients", "which of the two products of a layer's backward is left?"
    elif case["frozen"] and close(got[1], want[0], rtol=0.003):
        what, then = "attention was frozen too", "queries, keys and values are results: who needs their gradients?"
    elif close(got[1], want[0], rtol=0.003):
        what, then = "the backward pass was given one product for each", "a product has two operands: one gradient each"
    elif close(got[1], want[0] + want[1], rtol=0.003):
        what, then = "the backward pass was given the forward's work too", "what is needed again was kept in memory"
    else:
        what, then = "the backward pass is wrong", "a product has two operands; which of them needs a gradient?"
    return Wrong(what, why=f"backward: {say(ratio)} times what it should be", next=then)
