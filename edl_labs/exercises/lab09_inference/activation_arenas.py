"""memory_plan: how long activations live, who may be written over, the least memory, and offsets in one arena."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.checks.asked_form import in_form
from edl_labs.errors import Wrong
from edl_labs.units import byte_count, percent

ROOM = 1.10  # of the least bytes, promised in the lab's text

_LIVES = dict[Any, tuple[Any, Any]]


@exercise("memory_plan")
class ArenaOfActivations(Exercise):
    """Lifetimes of activations, what kernels may write over, the least bytes, and an offset for each tensor.

    A case has kernels, outputs, sizes and the alignment; `slips` has what known mistakes count as the least bytes. The
    evidence has the answers of the four functions, `may_overwrite` for every kernel.
    """

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"may_overwrite": list[Any] | None}

    def probe(self, student: Any, given: Any) -> Any:
        inputs = self.student_inputs(given)
        plain = [inputs["kernels"], inputs["outputs"]]
        lives = student.lifetimes(*self._fresh(given))
        over = [student.may_overwrite(at, *self._fresh(given), {**given["sizes"]}) for at in range(len(plain[0]))]
        least = student.least_bytes(*plain, inputs["sizes"], align=given["align"])
        offsets = student.memory_plan(*self._fresh(given), {**given["sizes"]}, align=given["align"])
        return {
            "lives": _in_order(in_form(lives, _LIVES)) if isinstance(lives, dict) else lives,
            "over": [one or [] for one in over],
            "least": least,
            "offsets": [[name, at] for name, at in sorted(offsets.items())] if isinstance(offsets, dict) else offsets,
        }

    def _fresh(self, case: Any) -> tuple[Any, Any]:
        return [{**one, "reads": [*one["reads"]]} for one in case["kernels"]], [*case["outputs"]]

    def student_inputs(self, case: Any) -> Any:
        """The kernels, outputs, sizes and the alignment."""
        kernels, outputs = self._fresh(case)
        return {"kernels": kernels, "outputs": outputs, "sizes": {**case["sizes"]}, "align": case["align"]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _judge_lives(case, got["lives"], want["lives"])
        for at, (found, right) in enumerate(zip(got["over"], want["over"], strict=True)):
            if found != right:
                raise _told_over(case, at, found, right)
        if got["least"] != want["least"]:
            raise _told_least(case, got["least"], want["least"])
        _judge_plan(case, got["offsets"], want)

    def format_case(self, case: Any) -> str:
        """The kernels with the bytes that they write, four a line; * writes in place."""
        made, sizes = {one["writes"] for one in case["kernels"]}, case["sizes"]
        inputs = ", ".join(f"{name} {size}" for name, size in sizes.items() if name not in made)
        texts = [
            f"{at}: {', '.join(one['reads'])} → {one['writes']}{'*' * one['in_place']} {sizes[one['writes']]}"
            for at, one in enumerate(case["kernels"])
        ]
        rows = ["; ".join(texts[at : at + 4]) for at in range(0, len(texts), 4)]
        given = f"inputs {inputs}; outputs {', '.join(case['outputs'])}; align {case['align']}"
        head = f"{given}; * marks a kernel that is in_place; the number after a name is its size in bytes"
        return "\n  ".join([head, *rows])

    def format_answer(self, case: Any, got: Any) -> str:
        """The least bytes and the plan, in the order of offsets."""
        placed = sorted((at, name) for name, at in got["offsets"])[:8]
        return f"least {got['least']}; offsets {', '.join(f'{name} {at}' for at, name in placed)} …"


def _in_order(lives: dict[Any, Any]) -> list[list[Any]]:
    return [[name, *ends] for name, ends in sorted(lives.items())]


def _judge_lives(case: Any, got: Any, want: Any) -> None:
    found, right = ({name: tuple(ends) for name, *ends in pairs} for pairs in (got, want))
    if set(found) != set(right):
        some = sorted(set(found) ^ set(right))[0]
        why = f"{some} is {'not a tensor of this network' if some in found else 'missing'}"
        then = "return a lifetime for each input and for each tensor that a kernel writes"
        raise Wrong("your lifetimes are for the wrong tensors", why=why, next=then)
    off = [name for name in right if found[name] != right[name]]
    if not off:
        return
    made = {one["writes"] for one in case["kernels"]}
    # An output that is wrong may be wrong as an output alone; first all that is wrong elsewhere.
    off.sort(key=lambda name: (name in case["outputs"], name not in made))
    name = off[0]
    why = f"got {found[name]} for {name}, which is in memory from kernel {right[name][0]} to {right[name][1]}"
    raise _told_life(name, case, why, found, right, off)


def _told_life(name: str, case: Any, why: str, found: Any, right: Any, off: list[str]) -> Wrong:
    """What is wrong with the life of `name`, the first of those that are off."""
    (first, last), (since, until) = found[name], right[name]
    if first != since:
        if name not in {one["writes"] for one in case["kernels"]}:
            return Wrong(
                "in your answer, the lifetime of an input begins at the wrong kernel",
                why=why,
                next="let it begin with kernel 0",
            )
        then = "let the lifetime begin with the kernel that writes the tensor"
        return Wrong("in your answer, the lifetime of a tensor begins at the wrong kernel", why=why, next=then)
    if name in case["outputs"] and last < until:
        then = "keep an output until the last kernel: the caller reads it after all kernels have run"
        return Wrong("in your answer, the lifetime of an output ends before the caller has read it", why=why, next=then)
    inner = [one for one in off if one not in case["outputs"]]
    readers = {one: [at for at, kernel in enumerate(case["kernels"]) if one in kernel["reads"]] for one in inner}
    if all(found[one][1] == min(readers[one], default=None) for one in inner):
        then = "keep a tensor until its last reader: with a skip connection, it is read again later"
        return Wrong("in your answer, the lifetime of a tensor ends with its first reader", why=why, next=then)
    if last == until - 1:
        then = "keep the inputs of a kernel while it runs, together with its output"
        return Wrong("in your answer, the lifetime of a tensor ends before its last reader runs", why=why, next=then)
    if last == until + 1:
        then = "let the lifetime end with the last reader: `last` itself is included"
        return Wrong("in your answer, the lifetime of a tensor is one kernel too long", why=why, next=then)
    then = "let the lifetime end with the last reader of the tensor; for an output, with the last kernel"
    return Wrong("in your answer, the lifetime of a tensor ends at the wrong kernel", why=why, next=then)


def _told_over(case: Any, at: int, found: list[Any], right: list[str]) -> Wrong:
    kernel = case["kernels"][at]
    names = [", ".join(map(str, one)) or "no tensor" for one in (found, right)]
    why = f"for kernel {at}, got {names[0]}, expected {names[1]}"
    extra = [one for one in found if one not in right]
    if not extra:
        if sorted(found) == sorted(right):
            return Wrong("your names are in the wrong order", why=why, next="keep the order of `reads`")
        then = "check every tensor that the kernel reads"
        return Wrong("your answer lacks a tensor that a kernel may overwrite", why=why, next=then)
    name = extra[0]
    if not kernel["in_place"]:
        then = "check `in_place`: a convolution, for example, needs all of its input until it has finished"
        return Wrong(
            "in your answer, a kernel that is not `in_place` overwrites a tensor that it reads", why=why, next=then
        )
    if name not in kernel["reads"]:
        return Wrong(
            "in your answer, a kernel overwrites a tensor that it does not read",
            why=why,
            next="choose from the kernel's `reads`",
        )
    if name in case["outputs"]:
        return Wrong(
            "in your answer, an output of the network is overwritten", why=why, next="keep all outputs for the caller"
        )
    if any(name in one["reads"] for one in case["kernels"][at + 1 :]):
        then = "keep a tensor as long as a later kernel reads it: its values are still needed"
        return Wrong("in your answer, a tensor that is read again later is overwritten", why=why, next=then)
    then = "compare the size of the tensor with that of the kernel's output"
    return Wrong("in your answer, a tensor is overwritten by one of a different size", why=why, next=then)


_LEAST = {
    "as they are": (
        "your function does not round sizes up to the alignment",
        "round up each size, because every tensor begins at a multiple of `align`",
    ),
    "rounded once": (
        "your function rounds up the sum, not the size of each tensor",
        "round up each tensor's size to a multiple of `align`",
    ),
    "never in place": (
        "your function counts both a tensor and the output that overwrites it",
        "a kernel that works in place needs no new memory for its output: count their memory only once",
    ),
    "its own": (
        "your function counts only the tensors that a kernel itself reads and writes",
        "also count the tensors that are kept for a later kernel",
    ),
    "all": (
        "your function adds up the tensors of all kernels",
        "add up separately for each kernel, and take the largest sum",
    ),
    "without reads": (
        "your function does not count a kernel's inputs while the kernel writes",
        "count the inputs as well: the lifetime of a tensor includes its last reader",
    ),
}


def _told_least(case: Any, found: Any, right: int) -> Wrong:
    why = f"got {found}, expected {right}"
    for name, (what, then) in _LEAST.items():
        if found == case["slips"][name]:
            return Wrong(what, why=why, next=then)
    then = "for each kernel, add up the rounded sizes of all tensors whose lifetime includes that kernel"
    return Wrong("your result is not the smallest possible number of bytes", why=why, next=then)


def _judge_plan(case: Any, got: Any, want: Any) -> None:
    offsets, lives = dict(got), {name: ends for name, *ends in want["lives"]}
    if set(offsets) != set(lives):
        some = sorted(set(offsets) ^ set(lives))[0]
        why = f"{some} is {'not a tensor of this network' if some in offsets else 'missing'}"
        raise Wrong("your plan is for the wrong tensors", why=why, next="return an offset for each tensor")
    align = case["align"]
    for name, at in offsets.items():
        if at < 0 or at % align:
            why = f"the offset of {name} is {at}, but `align` is {align}"
            then = "round up each size to a multiple of `align`"
            raise Wrong("one of your offsets is not a multiple of the alignment", why=why, next=then)
    spans = {name: (at, at + case["sizes"][name]) for name, at in offsets.items()}
    together = _overlaps(spans)
    in_place = {
        (name, one["writes"]) for one, names in zip(case["kernels"], want["over"], strict=True) for name in names
    }
    for one, other in together:
        if lives[one][0] > lives[other][1] or lives[other][0] > lives[one][1]:
            continue
        if spans[one] != spans[other] or not in_place & {(one, other), (other, one)}:
            raise _told_overlap(case, (one, other), lives, spans)
    _judge_peak(case, spans, together, in_place, want["least"])


def _overlaps(spans: Any) -> list[tuple[str, str]]:
    """Pairs of tensors that have bytes in common."""
    order = sorted(spans, key=lambda name: spans[name])
    return [
        (one, other) for at, one in enumerate(order) for other in order[at + 1 :] if spans[other][0] < spans[one][1]
    ]


def _told_overlap(case: Any, pair: tuple[str, str], lives: Any, spans: Any) -> Wrong:
    one, other = sorted(pair, key=lambda name: (lives[name][0], lives[name][1]))
    places = [f"{name} has bytes {spans[name]} in kernels {lives[name]}" for name in (one, other)]
    why = "; ".join(places)
    kernel = case["kernels"][lives[other][0]]
    if spans[one] == spans[other] and one in kernel["reads"] and kernel["writes"] == other:
        then = "which tensors may this kernel overwrite?"
        return Wrong("in your plan, a kernel overwrites a tensor that it must not overwrite", why=why, next=then)
    if lives[one][1] == lives[other][0] and kernel["writes"] == other:
        then = "do not reuse the memory of a tensor in the last kernel that reads it"
        return Wrong("in your plan, an output overlaps a tensor that its kernel still reads", why=why, next=then)
    then = "compare the lifetimes and the offsets of these two tensors"
    return Wrong("in your plan, two tensors that are in memory at the same time overlap", why=why, next=then)


def _judge_peak(case: Any, spans: Any, together: Any, in_place: Any, least: int) -> None:
    peak = max(end for _, end in spans.values())
    if peak <= ROOM * least:
        return
    why = (
        f"your arena takes {byte_count(peak)}, {percent(peak / least - 1)} more than the necessary {byte_count(least)}"
    )
    apart = [pair for pair in together if not _is_in_place(pair, in_place)]
    if in_place and together and len(apart) == len(together):
        then = "give the same place to a tensor and to the output that overwrites it"
        raise Wrong("your plan overwrites no tensor in place", why=why, next=then)
    if not apart:
        then = "let tensors that are never in memory at the same time share memory"
        raise Wrong("your plan reuses no memory", why=why, next=then)
    if all(spans[one] == spans[other] for one, other in apart):
        then = "put several small tensors into the memory of a large one that is no longer needed"
        raise Wrong("your plan reuses memory only for tensors of the same size", why=why, next=then)
    then = "small tensors occupy places where a large one would fit: which tensors should you place first?"
    raise Wrong("your plan leaves gaps that no tensor fits into", why=why, next=then)


def _is_in_place(pair: tuple[str, str], in_place: set[tuple[str, str]]) -> bool:
    """Whether one was written over the other, by one kernel or by several in a row."""
    reached, grown = {pair[0]}, True
    while grown:
        new = {b for one in in_place for a, b in (one, one[::-1]) if a in reached} - reached
        reached, grown = reached | new, bool(new)
    return pair[1] in reached
