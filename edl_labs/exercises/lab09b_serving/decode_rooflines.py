"""decode_bound: seconds of a prompt and of a decoding step, and the batch at which a step is at the ridge."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.input_guard import InputGuard, asked_twice, explained_by_changes
from edl_labs.units import byte_rate, counted, flop_rate, seconds, seconds_apart

_NEVER = 1e30  # a rate that takes no time: what is left is the other side of the roof


@exercise("decode_bound")
class DecodeBound(Exercise):
    """A decoder's prefill and decode on a roofline, and the batch at its ridge, with the cache that it reads.

    `prefill_s(chip, model, tokens)`, `decode_s(chip, model, batch, context)` and `ridge_batch(chip, model, context)`.
    The evidence has the times on the chip, and on chips that compute, or read, in no time.
    """

    answers = ("computing", "reading", "both", "ridge")

    skip_type_check = True

    def probe(self, student: Any, given: Any) -> Any:
        found, changed = asked_twice(lambda guard: self._asked(student, given, guard))
        return {**found, "changed": changed}

    def _asked(self, student: Any, given: Any, guard: InputGuard) -> dict[str, Any]:
        model = guard("model", given["model"])

        def asked(**rates: float) -> dict[str, Any]:
            chip = guard("chip", {**given["chip"], **rates})
            return {
                "prefill": student.prefill_s(chip, model, given["tokens"]),
                "decode": student.decode_s(chip, model, given["batch"], given["context"]),
                "one": student.decode_s(chip, model, 1, given["context"]),
            }

        chip = guard("chip", given["chip"])
        return {
            "computing": asked(memory_byte_per_s=_NEVER),
            "reading": asked(flop_per_s=_NEVER),
            "both": asked(),
            "ridge": [student.ridge_batch(chip, model, n) for n in given["contexts"]],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _require_form(got, want)
        with explained_by_changes(got["changed"]):
            self._judge_parts(case, got, want)

    def _judge_parts(self, case: Any, got: Any, want: Any) -> None:
        for side in ("computing", "reading"):
            for what in ("prefill", "one", "decode"):
                if not close(got[side][what], want[side][what]):
                    raise _time_symptom(case, side, what, got[side], want[side])
        for what in ("prefill", "one", "decode"):
            if not close(got["both"][what], want["both"][what]):
                came, true = seconds_apart(got["both"][what], want["both"][what])
                why = f"got {came}, expected {true}; your separate times for computing and for reading are right"
                wrong = "your time for computing and reading together is wrong"
                if close(got["both"][what], got["computing"][what] + got["reading"][what]):
                    wrong = "your code adds the times for computing and reading, but the two overlap"
                raise Wrong(wrong, why=why, next="take the longer of the two times")
        for context, found, right in zip(case["contexts"], got["ridge"], want["ridge"], strict=True):
            if found != right:
                raise _ridge_symptom(case, context, found, right, got["ridge"], want["ridge"])

    def format_answer(self, case: Any, got: Any) -> str:
        """The times on the chip, and the batches."""
        both = got["both"]
        times = ", ".join(
            f"{name} {_said(both[what])}" for name, what in (("prefill", "prefill"), ("decode", "decode"))
        )
        return f"{times}; ridge batches {', '.join(map(str, got['ridge']))}"

    def format_case(self, case: Any) -> str:
        """The chip, the model and what is asked."""
        chip, model = case["chip"], case["model"]
        return (
            f"{flop_rate(chip['flop_per_s'])} and {byte_rate(chip['memory_byte_per_s'])}; {model['parameters']:.3g} "
            f"parameters of {model['number_bytes']} B each, {model['layers']} layers, {model['heads']} heads and "
            f"{model['kv_heads']} kv heads of size {model['head_size']}; a prompt of {case['tokens']} tokens; "
            f"{case['batch']} sequences of {case['context']} tokens; "
            f"ridge batches for contexts of {', '.join(map(str, case['contexts']))}"
        )


def _said(value: Any) -> str:
    return seconds(value) if isinstance(value, (int, float)) and math.isfinite(value) else str(value)


def _require_form(got: Any, want: Any) -> None:
    """Wrong unless times are numbers, and a batch is a whole number or None."""
    times = [got[side][what] for side in ("computing", "reading", "both") for what in want["both"]]
    if any(type(one) not in (int, float) or not math.isfinite(one) for one in times):
        odd = next(one for one in times if type(one) not in (int, float) or not math.isfinite(one))
        raise Wrong(
            "one of your times is not a number of seconds",
            why=f"got {str(odd)[:60]}",
            next="return seconds, as a float",
        )
    for one in got["ridge"]:
        if one is not None and (type(one) not in (int, float) or one != one or one in (math.inf, -math.inf)):
            what = "ridge_batch() returned neither a finite number nor None"
            raise Wrong(what, why=f"got {str(one)[:60]}", next="return None if no batch reaches the ridge")
        if one is not None and one != int(one):
            then = "return the smallest whole batch size that reaches the ridge"
            raise Wrong("ridge_batch() did not return a whole number", why=f"got {one:g}", next=then)


_ITSELF = "in your function, attention looks back at one token too many or too few"


def _time_symptom(case: Any, side: str, what: str, got: Any, want: Any) -> Wrong:
    model, chip = case["model"], case["chip"]
    found, right = got[what], want[what]
    together = counted(1 if what == "one" else case["batch"], "sequence")
    told = "prefill" if what == "prefill" else f"a decoding step of {together}"
    came, true = seconds_apart(found, right)
    why = f"{told}: for {side} alone, got {came}, expected {true}"
    if found < 1e-6 * right:  # of a chip that does the other part in no time
        other = "reads" if side == "computing" else "computes"
        why = f"{told}: on a chip that {other} in no time, got almost 0, expected {true}"
        then = "take the longer time: a step ends when both parts have ended"
        return Wrong("your code takes the shorter of the two times", why=why, next=then)
    weights_s = model["parameters"] * model["number_bytes"] / chip["memory_byte_per_s"]
    products_s = 2 * model["parameters"] / chip["flop_per_s"]
    times = {"prefill": case["tokens"], "one": 1, "decode": case["batch"]}[what]
    if side == "reading":
        if times > 1 and close(found - right, (times - 1) * weights_s, rtol=1e-4):
            then = "count the weights once: a step reads each weight once and uses it for all its tokens"
            return Wrong("your function counts the weights again for every token", why=why, next=then)
        if found < right and close(found, weights_s, rtol=1e-6):
            then = "add the keys and values: a decoding step reads those of its sequence, and a prompt writes its own"
            return Wrong("your function leaves the cache out of the bytes moved", why=why, next=then)
        share = (found - weights_s) / (right - weights_s)
        if close(share, model["heads"] / model["kv_heads"], rtol=1e-4):
            then = "multiply by `kv_heads`: the heads of a group share keys and values"
            return Wrong("your function counts the cache for every head", why=why, next=then)
        if close(share, 1 / times, rtol=1e-4) and what == "decode":
            then = "count one cache for each sequence: every sequence has its own tokens"
            return Wrong("your function counts the cache of only one sequence", why=why, next=then)
        if close(share, 0.5, rtol=1e-4):
            return Wrong(
                "your function leaves out keys or values", why=why, next="count both keys and values, in every layer"
            )
        if what != "prefill" and any(close(share, 1 + one / case["context"], rtol=1e-7) for one in (1, -1)):
            return Wrong(_ITSELF, why=why, next="use `context` unchanged: it already includes the new token")
        for size in (1, 2, 4):
            if size != model["number_bytes"] and close(found * model["number_bytes"], right * size, rtol=1e-6):
                then = "use `number_bytes` for both the weights and the cache"
                return Wrong(
                    f"your function counts every number with {size} B instead of `number_bytes`", why=why, next=then
                )
        then = "count the weights once, and add the keys and values"
        return Wrong("your function counts the wrong number of bytes moved", why=why, next=then)
    if close(found, right - times * products_s / 2, rtol=1e-6) or close(found, times * products_s / 2, rtol=1e-6):
        then = "count 2 FLOP for each parameter and token"
        return Wrong("your function counts a multiplication and an addition as one operation", why=why, next=then)
    if found < right and close(found, times * products_s, rtol=1e-6):
        then = "count the tokens that each token looks back at: each of these costs a score and a weighted value"
        return Wrong("your function leaves out the operations of attention", why=why, next=then)
    attention = (found - times * products_s) / (right - times * products_s)
    if what == "prefill" and close(attention, 2 * times / (times + 1), rtol=1e-4):
        then = "add up how many tokens each token looks back at: token i of the prompt looks back at i tokens"
        return Wrong("in your function, every token of a prompt looks back at the whole prompt", why=why, next=then)
    if what == "prefill" and close(attention, (times - 1) / (times + 1), rtol=1e-6):
        then = "which token does the first token of a prompt look at?"
        return Wrong("in your function, the tokens of a prompt do not look at themselves", why=why, next=then)
    if what != "prefill" and any(close(attention, 1 + one / case["context"], rtol=1e-6) for one in (1, -1)):
        return Wrong(_ITSELF, why=why, next="use `context` unchanged: it already includes the new token")
    if close(attention, 0.5, rtol=1e-6):
        then = "per token looked at, count `head_size` multiply-adds for the score and as many for the weighted value"
        return Wrong("your function counts only half of attention's operations", why=why, next=then)
    if close(attention, model["kv_heads"] / model["heads"], rtol=1e-4):
        return Wrong(
            "your function counts attention only for the kv heads",
            why=why,
            next="count all heads: each has its own scores",
        )
    then = "per token, count 2 FLOP for each parameter, and 4 · … FLOP for each token that it looks at"
    return Wrong("your function counts the wrong number of operations", why=why, next=then)


def _ridge_symptom(case: Any, context: int, found: Any, right: Any, every: Any, want: Any) -> Wrong:
    why = f"for a context of {context} tokens, got {found}, expected {right}"
    if len(set(every)) == 1 and len(set(want)) > 1:
        then = "add the bytes of each sequence's keys and values, which grow with the context"
        return Wrong("your ridge batch does not depend on the context", why=why, next=then)
    if right is None:
        then = "how do your two times grow with the batch? A larger batch also reads more keys and values"
        what = "your function returned a batch, but no batch reaches the ridge at this context"
        return Wrong(what, why=why, next=then)
    if found is None:
        reached = [one for one in every if one is not None]
        if all(
            (one is None) == (aim is None or aim > max(reached, default=0))
            for one, aim in zip(every, want, strict=True)
        ):
            then = "solve an equation instead of searching: for which batch are the two times equal?"
            return Wrong("your search ends before the batch that reaches the ridge", why=why, next=then)
        then = "return None only if reading takes longer than computing for every batch, however large"
        return Wrong("your function returned None, but some batch reaches the ridge", why=why, next=then)
    if found == right - 1:
        return Wrong("at your batch, reading still takes longer than computing", why=why, next="round up")
    return Wrong("your ridge batch is wrong", why=why, next="for which batch are your two times equal?")
