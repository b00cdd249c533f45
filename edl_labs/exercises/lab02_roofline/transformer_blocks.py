"""count_a_model: the tensor contractions of a transformer block, forward and backward."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import say, two_numbers

_EXACT = 1e-9  # the count of a slip is whole: nearer to it than softmax or a norm brings an answer
_Row = tuple[Any, Any, Any]  # a case, the answer to it, and what the reference says of it and of larger blocks


@exercise("count_a_model")
class CountAModel(Exercise):
    """FLOPs of a transformer block's contractions, forward and backward, from its shapes.

    `student.count_block(shape)` gives `(forward_flop, backward_flop)` within 1 %.
    """

    answers = "all"

    skip_type_check = True  # `two_numbers` names what is asked for

    def probe(self, student: Any, given: Any) -> Any:
        # What the block's parts come to follows from blocks with more tokens and wider layers: for messages alone.
        more = {"longer": {"tokens": 2 * given["tokens"]}, "wider": {"hidden": 2 * given["hidden"]}}
        answer = {name: student.count_block({**given, **change}) for name, change in more.items()}
        return {"asked": student.count_block(dict(given)), **answer}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        answer, right = got["asked"], want["asked"]
        two_numbers(answer, "forward_flop, backward_flop")
        if not close(answer[0], right[0], rtol=0.01):
            raise _forward_mistake(case, answer[0], want)
        if not close(answer[1], right[1], rtol=0.01):
            raise _backward_mistake(case, answer, right)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Attention or frozen blocks are counted another way in all cases, and all else is right."""
        rows = [(case, answer["asked"], right) for case, answer, right in zip(cases, got, want, strict=True)]
        return _attention_of_kv_heads(rows) or _frozen_for_nothing(rows) or _left_out_everywhere(rows)

    def format_case(self, case: Any) -> str:
        return ", ".join(f"{name} {value}" for name, value in case.items())


def _terms(case: Any, want: Any) -> dict[str, float]:
    """FLOPs of each part, by which an answer that forgets it differs: from what the reference says of other blocks."""
    forward, longer, wider = (want[name][0] for name in ("asked", "longer", "wider"))
    # The attention grows with the square of the tokens, all else with the tokens; the feed-forward part with `hidden`.
    attention, hidden = (longer - 2 * forward) / 2, wider - forward
    grouped = case["kv_heads"] / case["heads"]
    own = (forward - attention - hidden) / (1 + grouped)
    return {
        "the query and output projections": own,
        "the key and value projections": own * grouped,
        "the projection of keys or of values": own * grouped / 2,
        "half of the attention (one of its two products, or what a causal mask would leave out)": attention / 2,
        "the attention itself": attention,
        "the feed-forward layers": hidden,
        "the product with W3, the matrix of the gate": hidden / 3 if case["gated"] else 0.0,
        "the query or the output projection": own / 2,
    }


def _forward_mistake(case: Any, got: float, reference: Any) -> Wrong:
    known = _known_forward(case, got, reference)
    if known is not None:
        return known
    want = reference["asked"][0]
    missing = [
        name for name, count in _terms(case, reference).items() if count and close(got, want - count, rtol=0.003)
    ]
    if missing:
        return _left_out(missing, got / want)
    return Wrong(
        "the forward pass is wrong",
        why=f"your forward count is {say(got / want)} times what it should be",
        next="write down m, k and n for each of the eight products (nine with a gate), and count 2·m·k·n for each",
    )


def _left_out(parts: list[str], ratio: float) -> Wrong:
    why = f"your forward count is {say(ratio)} times what it should be"
    then = "go through the products in the listing above, one by one; there is no mask"
    return Wrong(f"your count leaves out {', or '.join(parts)}", why=why, next=then)


def _left_out_everywhere(rows: list[_Row]) -> Wrong | None:
    """The parts of which one is missing from every forward pass that has them: in one pass more may fit."""
    wrong = [row for row in rows if not close(row[1][0], row[2]["asked"][0], rtol=0.01)]
    known = {told and str(told.what) for told in (_known_forward(case, got[0], right) for case, got, right in wrong)}
    if not wrong or (len(known) == 1 and None not in known):
        return None
    left = [
        {name for name, count in _terms(case, right).items() if close(got[0], right["asked"][0] - count, rtol=0.003)}
        for case, got, right in rows
    ]
    case, got, right = wrong[0]
    parts = [name for name in _terms(case, right) if all(name in names for names in left)]
    return _left_out(parts, got[0] / right["asked"][0]) if parts else None


def _known_forward(case: Any, got: float, reference: Any) -> Wrong | None:
    """A mistake that this forward count alone shows, other than a part that is missing."""
    terms, want = _terms(case, reference), reference["asked"][0]
    attention = terms["the attention itself"]
    tokens = case["batch"] * case["tokens"]
    ungrouped = terms["the query and output projections"] - terms["the key and value projections"]
    known = [
        (0.5 * want, "your code counts a multiply-add as one operation", "how many operations are in a·b + c?"),
        (want / case["batch"], "your count leaves out the batch", "count every sequence of the batch"),
        (want / tokens, "your count is for one token", "count the whole batch of sequences"),
        (
            want + (case["heads"] - 1) * attention,
            "your count gives each head the full width",
            "divide the width among the heads",
        ),
        (want - attention * (1 - 1 / case["heads"]), "your count has only one head", "count all heads"),
        (
            want + (case["batch"] - 1) * attention,
            "in your count, tokens attend to other sequences",
            "keep attention inside each sequence",
        ),
        (want + ungrouped, "your count uses all heads for keys and values, too", "use kv_heads for keys and values"),
        (3 * want, "your forward count includes the backward pass", "return only the forward pass first"),
    ]
    other = 1 - 1 / case["tokens"]  # both are near to a product that is missing: told by what is left of it
    near = [
        (
            want - attention * other,
            "in your count, the work of attention grows only linearly with the tokens",
            "how many tokens does each token attend to?",
        ),
        (
            want - attention / 2 * other,
            "your count assumes a causal mask",
            "here every token attends to all tokens: count them all",
        ),
    ]
    for value, what, then in near:
        if case["tokens"] > 1 and close(got, value, rtol=1e-9):
            return Wrong(what, why=f"your forward count is {say(got / want)} times what it should be", next=then)
    for value, what, then in known:
        if value != want and close(got, value, rtol=0.003):
            return Wrong(what, why=f"your forward count is {say(got / want)} times what it should be", next=then)
    return None


def _attention_of_kv_heads(rows: list[_Row]) -> Wrong | None:
    """Attention, or one product of it, has kv_heads heads in every forward pass."""
    for products, which in ((2, "attention"), (1, "one product of attention")):
        less = [
            products / 2 * _terms(case, right)["the attention itself"] * (1 - case["kv_heads"] / case["heads"])
            for case, _, right in rows
        ]
        if any(less) and all(
            close(got[0], right["asked"][0] - missing, rtol=_EXACT)
            for (_, got, right), missing in zip(rows, less, strict=True)
        ):
            why = (
                "your count is right if kv_heads equals heads; "
                "otherwise it is the cost of attention with only kv_heads heads"
            )
            then = "kv_heads is the number of heads of keys and values: how many heads of queries use them?"
            return Wrong(f"your count gives {which} `kv_heads` heads instead of `heads`", why=why, next=then)
    return None


def _frozen_for_nothing(rows: list[_Row]) -> Wrong | None:
    """All is right, but a frozen block has no backward pass."""
    frozen = [got[1] for case, got, _ in rows if case["frozen"]]
    others = [(got[1], right["asked"][1]) for case, got, right in rows if not case["frozen"]]
    passes = [(got[0], right["asked"][0]) for _, got, right in rows]
    if not frozen or not all(close(one, 0) for one in frozen):
        return None
    if not all(close(one, right, rtol=0.01) for one, right in (*others, *passes)):
        return None
    return Wrong(
        "your count gives a frozen block no backward pass",
        why="your other counts are right; a frozen weight needs no gradient, but the layers "
        "before it still need gradients",
        next="each layer has two products in the backward pass: which of them does the previous layer need?",
    )


def _backward_mistake(case: Any, got: Any, want: Any) -> Wrong:
    ratio = got[1] / want[1]
    if case["frozen"] and close(got[1], 2 * want[0], rtol=0.003):
        what, then = (
            "your count includes gradients of frozen weights",
            "which of a layer's two backward products is still needed?",
        )
    elif case["frozen"] and close(got[1], want[0], rtol=0.003):
        what, then = (
            "your count treats attention as frozen, too",
            "queries, keys and values are results: what needs their gradients?",
        )
    elif close(got[1], want[0], rtol=0.003):
        what, then = (
            "your backward pass has only one product for each forward product",
            "count a gradient for each of a product's two operands",
        )
    elif close(got[1], want[0] + want[1], rtol=0.003):
        what, then = (
            "your backward pass includes the work of the forward pass",
            "leave the forward pass out: values that are needed again were kept in memory",
        )
    else:
        what, then = "the backward pass is wrong", "which of a product's two operands need a gradient?"
    return Wrong(what, why=f"your backward count is {say(ratio)} times what it should be", next=then)
