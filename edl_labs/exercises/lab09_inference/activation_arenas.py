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
        head = (
            f"inputs {inputs}; outputs {', '.join(case['outputs'])}; align {case['align']}; * is in place, bytes behind"
        )
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
        why = f"{some} is {'of no network here' if some in found else 'missing'}"
        raise Wrong("lifetimes are of other tensors", why=why, next="inputs, and what each kernel writes")
    off = [name for name in right if found[name] != right[name]]
    if not off:
        return
    made = {one["writes"] for one in case["kernels"]}
    # An output that is wrong may be wrong as an output alone; first all that is wrong elsewhere.
    off.sort(key=lambda name: (name in case["outputs"], name not in made))
    name = off[0]
    why = f"{name} has {found[name]}, and is in memory from kernel {right[name][0]} to {right[name][1]}"
    raise _told_life(name, case, why, found, right, off)


def _told_life(name: str, case: Any, why: str, found: Any, right: Any, off: list[str]) -> Wrong:
    """What is wrong with the life of `name`, the first of those that are off."""
    (first, last), (since, until) = found[name], right[name]
    if first != since:
        if name not in {one["writes"] for one in case["kernels"]}:
            return Wrong("an input is in memory before its first reader", why=why, next="from kernel 0 on")
        return Wrong("a tensor's life begins elsewhere", why=why, next="with the kernel that writes it")
    if name in case["outputs"] and last < until:
        then = "the caller reads it when all kernels are done: its place must not be given away"
        return Wrong("an output's memory is given away before the caller has read it", why=why, next=then)
    inner = [one for one in off if one not in case["outputs"]]
    readers = {one: [at for at, kernel in enumerate(case["kernels"]) if one in kernel["reads"]] for one in inner}
    if all(found[one][1] == min(readers[one], default=None) for one in inner):
        then = "a skip connection: the same tensor is read again, and must still be there"
        return Wrong("a tensor's life ends with its first reader", why=why, next=then)
    if last == until - 1:
        then = "a kernel reads while it runs: its inputs are in memory together with its output"
        return Wrong("a tensor is given away before its last reader runs", why=why, next=then)
    if last == until + 1:
        return Wrong("a tensor stays a kernel longer than it is needed", why=why, next="last is included")
    return Wrong("a tensor's life ends elsewhere", why=why, next="with its last reader; outputs with the last kernel")


def _told_over(case: Any, at: int, found: list[Any], right: list[str]) -> Wrong:
    kernel = case["kernels"][at]
    why = f"kernel {at} may write over {', '.join(right) or 'nothing'}; {', '.join(map(str, found)) or 'nothing'} came"
    extra = [one for one in found if one not in right]
    if not extra:
        if sorted(found) == sorted(right):
            return Wrong("the names are in the wrong order", why=why, next="that of reads")
        return Wrong("a kernel may write over more than that", why=why, next="go through all that it reads")
    name = extra[0]
    if not kernel["in_place"]:
        then = "a convolution needs all of its input until it is done"
        return Wrong("a kernel that is not in_place writes over what it reads", why=why, next=then)
    if name not in kernel["reads"]:
        return Wrong("a kernel writes over something that it does not read", why=why, next="one of its reads")
    if name in case["outputs"]:
        return Wrong("an output of the network is written over", why=why, next="the caller wants it as it is")
    if any(name in one["reads"] for one in case["kernels"][at + 1 :]):
        then = "a later kernel reads it: it would find something else there"
        return Wrong("a tensor is written over that is read again", why=why, next=then)
    return Wrong("a tensor is overwritten by one of another size", why=why, next="only what has as many bytes")


_LEAST = {
    "as they are": ("sizes are not rounded up to the alignment", "align: each tensor begins at a multiple of it"),
    "rounded once": ("the sum is rounded up, and not each tensor", "each tensor takes a multiple of align"),
    "never in place": ("what is written in place is counted twice, with what it overwrites", "the two have one place"),
    "its own": (
        "only what a kernel itself reads and writes was counted",
        "what waits for a later kernel is in memory, too",
    ),
    "all": ("the tensors of all kernels were added up", "no kernel needs them all: the most of any one kernel"),
    "without reads": ("a kernel's inputs are in memory while it writes", "lifetimes include the last reader"),
}


def _told_least(case: Any, found: Any, right: int) -> Wrong:
    why = f"you returned {found}, {right} is right"
    for name, (what, then) in _LEAST.items():
        if found == case["slips"][name]:
            return Wrong(what, why=why, next=then)
    then = "for each kernel: the rounded sizes of all tensors that live while it runs"
    return Wrong("that is not the least number of bytes", why=why, next=then)


def _judge_plan(case: Any, got: Any, want: Any) -> None:
    offsets, lives = dict(got), {name: ends for name, *ends in want["lives"]}
    if set(offsets) != set(lives):
        some = sorted(set(offsets) ^ set(lives))[0]
        raise Wrong("the plan is of other tensors", why=f"look for {some}", next="an offset for each tensor")
    align = case["align"]
    for name, at in offsets.items():
        if at < 0 or at % align:
            why = f"{name} begins at {at}, and align is {align}"
            raise Wrong("an offset is not a multiple of the alignment", why=why, next="round sizes up to it")
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
    why = f"{one} is at {spans[one]} in kernels {lives[one]}, {other} at {spans[other]} in kernels {lives[other]}"
    kernel = case["kernels"][lives[other][0]]
    if spans[one] == spans[other] and one in kernel["reads"] and kernel["writes"] == other:
        then = "which tensors may this kernel overwrite?"
        return Wrong("a kernel writes over what it must not overwrite", why=why, next=then)
    if lives[one][1] == lives[other][0] and kernel["writes"] == other:
        then = "lifetimes include both ends: in its last kernel a tensor is still read"
        return Wrong("a tensor is placed over one that its own kernel still reads", why=why, next=then)
    return Wrong("two tensors that are in memory together overlap", why=why, next="compare lifetimes and places")


def _judge_peak(case: Any, spans: Any, together: Any, in_place: Any, least: int) -> None:
    peak = max(end for _, end in spans.values())
    if peak <= ROOM * least:
        return
    why = (
        f"it ends at {byte_count(peak)}, {percent(peak / least - 1)} more than the {byte_count(least)} that are needed"
    )
    apart = [pair for pair in together if not _is_in_place(pair, in_place)]
    if in_place and together and len(apart) == len(together):
        raise Wrong("nothing is written in place", why=why, next="one place for what overwrites one another")
    if not apart:
        raise Wrong("no memory is used twice", why=why, next="tensors that are never live together may share memory")
    if all(spans[one] == spans[other] for one, other in apart):
        then = "a large place that is free again has room for several small tensors"
        raise Wrong("memory is used again only as a whole piece", why=why, next=then)
    then = "small tensors are where a large one could have been: which should be placed first?"
    raise Wrong("gaps are left that nothing fits into", why=why, next=then)


def _is_in_place(pair: tuple[str, str], in_place: set[tuple[str, str]]) -> bool:
    """Whether one was written over the other, by one kernel or by several in a row."""
    reached, grown = {pair[0]}, True
    while grown:
        new = {b for one in in_place for a, b in (one, one[::-1]) if a in reached} - reached
        reached, grown = reached | new, bool(new)
    return pair[1] in reached
