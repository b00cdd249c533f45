"""decode_bound: seconds of a prompt and of a decoding step, and the batch at which a step is at the ridge."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.input_guard import InputGuard, asked_twice, explained_by_changes
from edl_labs.units import byte_rate, flop_rate, seconds

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
                came, true = _told_apart(got["both"][what], want["both"][what])
                why = f"{came} came back, {true} is right; your times for computing and for reading are right"
                wrong = "your time for computing and reading together is wrong"
                if close(got["both"][what], got["computing"][what] + got["reading"][what]):
                    wrong = "you added the times for computing and reading, but the two overlap"
                raise Wrong(wrong, why=why, next="the longer of the two is the time")
        for context, found, right in zip(case["contexts"], got["ridge"], want["ridge"], strict=True):
            if found != right:
                raise _ridge_symptom(case, context, found, right, got["ridge"], want["ridge"])

    def format_answer(self, case: Any, got: Any) -> str:
        """The times on the chip, and the batches."""
        both = got["both"]
        times = ", ".join(
            f"{name} {_said(both[what])}" for name, what in (("prefill", "prefill"), ("decode", "decode"))
        )
        return f"{times}; ridge at {', '.join(map(str, got['ridge']))}"

    def format_case(self, case: Any) -> str:
        """The chip, the model and what is asked."""
        chip, model = case["chip"], case["model"]
        return (
            f"{flop_rate(chip['flop_per_s'])} and {byte_rate(chip['memory_byte_per_s'])}; {model['parameters']:.3g} "
            f"parameters of {model['number_bytes']} B, {model['layers']} layers, {model['heads']} heads on "
            f"{model['kv_heads']} of {model['head_size']}; a prompt of {case['tokens']}; {case['batch']} sequences of "
            f"{case['context']}; the ridge at contexts of {', '.join(map(str, case['contexts']))}"
        )


def _said(value: Any) -> str:
    return seconds(value) if isinstance(value, (int, float)) and math.isfinite(value) else str(value)


def _require_form(got: Any, want: Any) -> None:
    """Wrong unless times are numbers, and a batch is a whole number or None."""
    times = [got[side][what] for side in ("computing", "reading", "both") for what in want["both"]]
    if any(type(one) not in (int, float) or not math.isfinite(one) for one in times):
        odd = next(one for one in times if type(one) not in (int, float) or not math.isfinite(one))
        raise Wrong("a time is not a number of seconds", why=str(odd)[:60], next="return seconds, as a float")
    for one in got["ridge"]:
        if one is not None and (type(one) not in (int, float) or one != one or one in (math.inf, -math.inf)):
            raise Wrong(
                "where no batch reaches the ridge the answer is None", why=str(one)[:60], next="return None there"
            )
        if one is not None and one != int(one):
            raise Wrong(
                "a batch is a whole number", why=f"{one:g} came", next="the smallest one that reaches the ridge"
            )


_ITSELF = "a token is counted that is not among those looked back at, or one is missing"


def _told_apart(found: float, right: float) -> tuple[str, str]:
    """Two times in as many digits as tell them apart."""
    for digits in (3, 6, 9):
        texts = seconds(found, digits=digits), seconds(right, digits=digits)
        if texts[0] != texts[1]:
            break
    return texts


def _time_symptom(case: Any, side: str, what: str, got: Any, want: Any) -> Wrong:
    model, chip = case["model"], case["chip"]
    found, right = got[what], want[what]
    told = "prefill" if what == "prefill" else f"a decoding step of {1 if what == 'one' else case['batch']}"
    came, true = _told_apart(found, right)
    why = f"{told}: {came} of {side} came back; {true} is right"
    if found < 1e-6 * right:  # of a chip that does the other part in no time
        other = "reads" if side == "computing" else "computes"
        why = f"{told}: on a chip that {other} in no time next to nothing came, and it is {true}"
        return Wrong("the shorter of two times is taken", why=why, next="a step ends when the longer part has ended")
    weights_s = model["parameters"] * model["number_bytes"] / chip["memory_byte_per_s"]
    products_s = 2 * model["parameters"] / chip["flop_per_s"]
    times = {"prefill": case["tokens"], "one": 1, "decode": case["batch"]}[what]
    if side == "reading":
        if times > 1 and close(found - right, (times - 1) * weights_s, rtol=1e-4):
            then = "a step reads each weight once and uses it for all its tokens: that is what batches are for"
            return Wrong("weights are read for every token", why=why, next=then)
        if found < right and close(found, weights_s, rtol=1e-6):
            then = "each sequence reads the keys and values of its own tokens; a prompt writes those of all of its own"
            return Wrong("the cache is left out of what is moved", why=why, next=then)
        share = (found - weights_s) / (right - weights_s)
        if close(share, model["heads"] / model["kv_heads"], rtol=1e-4):
            return Wrong("the cache is counted for every head", why=why, next="heads of a group share one: kv_heads")
        if close(share, 1 / times, rtol=1e-4) and what == "decode":
            return Wrong("one sequence's cache is read for all", why=why, next="each sequence has tokens of its own")
        if close(share, 0.5, rtol=1e-4):
            return Wrong("keys or values are left out", why=why, next="both are read, in every layer")
        if what != "prefill" and any(close(share, 1 + one / case["context"], rtol=1e-7) for one in (1, -1)):
            return Wrong(_ITSELF, why=why, next="context has the new token in it already")
        for size in (1, 2, 4):
            if size != model["number_bytes"] and close(found * model["number_bytes"], right * size, rtol=1e-6):
                then = "number_bytes applies to weights and cache alike"
                return Wrong(f"a number has {size} B, whatever number_bytes says", why=why, next=then)
        return Wrong("the number of bytes moved is wrong", why=why, next="weights once, and keys and values")
    if close(found, right - times * products_s / 2, rtol=1e-6) or close(found, times * products_s / 2, rtol=1e-6):
        return Wrong("a multiply and an add are two operations", why=why, next="2 FLOP for a parameter and token")
    if found < right and close(found, times * products_s, rtol=1e-6):
        then = "besides the weights' products, a token has a score and a sum with each token that it looks back at"
        return Wrong("attention is left out of what is computed", why=why, next=then)
    attention = (found - times * products_s) / (right - times * products_s)
    if what == "prefill" and close(attention, 2 * times / (times + 1), rtol=1e-4):
        then = "token i of the prompt looks back at i tokens: add them up"
        return Wrong("all tokens of a prompt look back at all of it", why=why, next=then)
    if what == "prefill" and close(attention, (times - 1) / (times + 1), rtol=1e-6):
        then = "the first token looks back at one token: which?"
        return Wrong("the tokens of a prompt do not look at themselves", why=why, next=then)
    if what != "prefill" and any(close(attention, 1 + one / case["context"], rtol=1e-6) for one in (1, -1)):
        return Wrong(_ITSELF, why=why, next="context has the new token in it already")
    if close(attention, 0.5, rtol=1e-6):
        then = "for each token looked at: a score, and its value into the sum, of head_size multiply-adds each"
        return Wrong("half of attention's operations are counted", why=why, next=then)
    if close(attention, model["kv_heads"] / model["heads"], rtol=1e-4):
        return Wrong("attention is computed only for kv heads", why=why, next="every head has scores of its own")
    return Wrong(
        "the number of operations is wrong", why=why, next="2 for each parameter, 4 · … for each token looked at"
    )


def _ridge_symptom(case: Any, context: int, found: Any, right: Any, every: Any, want: Any) -> Wrong:
    why = f"at {context} tokens {found} for {right}"
    if len(set(every)) == 1 and len(set(want)) > 1:
        then = "each sequence brings its own keys and values to be read"
        return Wrong("the batch at the ridge does not depend on the context", why=why, next=then)
    if right is None:
        then = "a larger batch reads more keys and values, too: let the batch grow without end in your own two times"
        return Wrong("no batch reaches the ridge at this context", why=why, next=then)
    if found is None:
        reached = [one for one in every if one is not None]
        if all(
            (one is None) == (aim is None or aim > max(reached, default=0))
            for one, aim in zip(every, want, strict=True)
        ):
            then = "no loop is needed: where are the two times equal, as an equation in the batch?"
            return Wrong("the search ends before the batch that reaches the ridge", why=why, next=then)
        return Wrong(
            "some batch does reach the ridge", why=why, next="None is for contexts where even an endless one reads"
        )
    if found == right - 1:
        return Wrong("this batch still reads for longer than it computes", why=why, next="round up")
    return Wrong("the ridge is at another batch", why=why, next="for which batch are your two times equal?")
