"""strides: layouts read from strides, what a placement of layouts copies, and the placement that copies least."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab08b_layouts.stride_slips import COPIED, PLACEMENTS, READ
from edl_labs.exercises.slip_digests import digest, named_slip
from edl_labs.units import byte_count

LAYOUTS = ("NCHW", "NHWC")
_ANSWERS = (*LAYOUTS, "both", "neither")


@exercise("strides")
class Strides(Exercise):
    """Layouts from strides, the bytes that a placement of layouts copies, and the placement with the fewest.

    `layout_of(shape, stride)`, `conversions(net, layouts)` for all placements, and `place_layouts(net)`.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"read": [""], "copied": [[["", 0]]], "chosen": [["", ""]]}

    def probe(self, student: Any, given: Any) -> Any:
        return {
            "read": [student.layout_of((*shape,), (*stride,)) for shape, stride in given["tensors"]],
            "copied": [_items(student.conversions(_copied(given["net"]), one)) for one in placements(given["net"])],
            "chosen": _items(student.place_layouts(_copied(given["net"]))),
        }

    def student_inputs(self, case: Any) -> Any:
        """A net, and the requested placements."""
        return {"tensors": case["tensors"], "net": _copied(case["net"]), "placements": list(placements(case["net"]))}

    def public_want(self, case: Any, want: Any) -> Any:
        """The same, a text for each placement: there are a hundred of them."""
        return {**want, "copied": [copies_as_text(_all_copies(one)) for one in want["copied"]]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        tensors = zip(case["tensors"], got["read"], want["read"], strict=True)
        # Whole shapes first: who has a stride wrong need not think of dimensions of one element.
        for (shape, stride), found, right in sorted(tensors, key=lambda one: 1 in one[0][0]):
            if found != right:
                why = f"layout_of() returned {found!r} for shape {tuple(shape)} with strides {tuple(stride)}"
                raise _misread(found, right, why)
        for layouts, found, right in zip(placements(case["net"]), got["copied"], want["copied"], strict=True):
            if _all_copies(found) != _all_copies(right):
                raise _miscounted(case["net"], layouts, _all_copies(found), _all_copies(right))
        self._judge_choice(case["net"], got["chosen"], want)

    def _judge_choice(self, net: Any, chosen: Any, want: Any) -> None:
        every = list(placements(net))
        chosen = dict(chosen)
        if chosen not in every:
            raise Wrong("your result is not a placement for this network", why=_no_placement(net, chosen), next=_PLACE)
        bytes_of = [sum(_all_copies(one).values()) for one in want["copied"]]
        found, best = bytes_of[every.index(chosen)], min(bytes_of)
        if found > best:
            why = f"your placement copies {byte_count(found)}, but {byte_count(best)} is possible"
            then = "where must the layout change, and which tensor on the way is the smallest?"
            raise Wrong("your placement does not copy the fewest bytes", why=why, next=then)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The rule that gives all answers: to the tensors, else to all copies, else all choices."""
        if any(one["read"] != other["read"] for one, other in zip(got, want, strict=True)):
            return named_slip(cases, [digest(one["read"]) for one in got], READ, of="read_slips")
        copied = [[copies_as_text(_all_copies(one)) for one in all_["copied"]] for all_ in got]
        if copied != [[copies_as_text(_all_copies(one)) for one in all_["copied"]] for all_ in want]:
            return named_slip(cases, [digest(one) for one in copied], COPIED, of="copy_slips")
        return _first(
            PLACEMENTS,
            lambda aim: all(
                dict(g["chosen"])
                == aim(case["net"], [_all_copies(one) for one in w["copied"]], placements(case["net"]))
                for case, g, w in zip(cases, got, want, strict=True)
            ),
        )

    def format_answer(self, case: Any, got: Any) -> str:
        """The choice, with what it copies."""
        every, chosen = placements(case["net"]), dict(got["chosen"])
        if chosen not in every:
            return _named(chosen)
        copied = _all_copies(got["copied"][every.index(chosen)])
        return f"{_named(chosen)}; it copies {byte_count(sum(copied.values()))}"

    def format_case(self, case: Any) -> str:
        """The net."""
        shown = []
        for node in case["net"]:
            size = "x".join(map(str, node["shape"]))
            shown.append(f"{node['name']}: {node['op']}({', '.join(node['inputs'])}) {size}")
        return "; ".join(shown)


_PLACE = "return a dict with 'NCHW' or 'NHWC' for every node's name; fixed nodes keep their layout"


def is_fixed(node: Any) -> str:
    """The layout that a node is bound to; "" for one that takes either."""
    if node["op"] in ("input", "output", "nchw_only"):
        return str(node.get("layout") or "NCHW")
    return "NHWC" if node["op"] == "conv" else ""


def placements(net: Any) -> list[dict[str, str]]:
    """All layouts of the free nodes, with those that are fixed."""
    free = [node["name"] for node in net if not is_fixed(node)]
    fixed = {node["name"]: is_fixed(node) for node in net}
    both = itertools.product(LAYOUTS, repeat=len(free))
    return [{**fixed, **dict(zip(free, one, strict=True))} for one in both]


def _first(rules: Any, is_it: Any) -> Wrong | None:
    for rule, what, why, then in rules:
        if is_it(rule):
            return Wrong(what, why=why, next=then)
    return None


def _all_copies(copies: Any) -> dict[str, int]:
    """Copies that move anything, by name; also of a public text."""
    if isinstance(copies, str):
        copies = [(name, int(size)) for name, size in (one.split("=") for one in copies.split())]
    return {name: size for name, size in sorted(copies) if size}


def copies_as_text(copies: dict[str, int]) -> str:
    """Copies by name, as one text."""
    return " ".join(f"{name}={size}" for name, size in sorted(copies.items()) if size)


def _is_alike(net: Any, name: str) -> bool:
    """Whether a node's result, or its weight, has both layouts."""
    node = next((one for one in net if one["name"] == name.removesuffix(".weight")), None)
    sizes = (node or {}).get("weight" if name.endswith(".weight") else "shape", (0, 0, 0, 0))
    return bool(sizes[1] == 1 or sizes[2] * sizes[3] == 1)


def _items(found: Any) -> Any:
    """A dict as pairs: which keys it has is for `compare` to say."""
    return [[name, size] for name, size in found.items()] if hasattr(found, "items") else found


def _copied(net: Any) -> Any:
    return [{**node, "inputs": [*node["inputs"]], "shape": [*node["shape"]]} for node in net]


def _named(layouts: Any) -> str:
    return ", ".join(f"{name} {layout}" for name, layout in layouts.items())


def _no_placement(net: Any, chosen: Any) -> str:
    for node in net:
        layout = chosen.get(node["name"])
        if layout not in LAYOUTS:
            return f"your placement has {layout!r} for {node['name']}"
        if is_fixed(node) not in ("", layout):
            return f"{node['name']} ({node['op']}) runs only in {is_fixed(node)}, but your placement has {layout}"
    unknown = ", ".join(sorted(set(chosen) - {node["name"] for node in net}))
    return f"your placement names {unknown}, which the net does not have"


def _misread(found: Any, right: str, why: str) -> Wrong:
    if found not in _ANSWERS:
        return Wrong("your result is not a layout", why=why, next=f"return one of {', '.join(_ANSWERS)}")
    if right == "both":
        then = "a stride is multiplied by an index: does it matter if the only index is 0?"
        return Wrong(
            "your function reports only one layout, or none, for a tensor that has both layouts", why=why, next=then
        )
    if right == "neither":
        then = (
            "check every stride: it must be the product of the sizes of all inner dimensions, without gaps or expansion"
        )
        return Wrong("your function reports a layout for a tensor with gaps or a different order", why=why, next=then)
    then = "start with the innermost dimension, W in NCHW and C in NHWC: its stride is 1; what are the other strides?"
    return Wrong("your function derives a wrong layout from the strides", why=why, next=then)


def _miscounted(net: Any, layouts: Any, found: dict[str, int], right: dict[str, int]) -> Wrong:
    at = f", with {_named({n['name']: layouts[n['name']] for n in net if not is_fixed(n)}) or 'no free nodes'}"
    for name in sorted(set(found) | set(right)):
        mine, due = found.get(name, 0), right.get(name, 0)
        if mine == due:
            continue
        why = f"{name}: got {mine} bytes, expected {due}" + at
        if not due and _is_alike(net, name):
            then = "copy a tensor with one channel or one pixel only if it is padded: it already has both layouts"
            return Wrong("your answer copies a tensor to a layout that the tensor already has", why=why, next=then)
        if not due:
            then = "which nodes read this tensor, and in which form? Does this form already exist?"
            return Wrong("your answer copies a tensor unnecessarily", why=why, next=then)
        if not mine:
            what = "your answer leaves out a copy of a tensor"
            if name.endswith(".weight"):
                what = "your answer leaves out a copy of a weight"
            return Wrong(what, why=why, next="which form is needed, and which exists?")
        then = "count reading the existing form and writing the new one, with padding, once for each new form"
        return Wrong("in your answer, the bytes of a copy are wrong", why=why, next=then)
    return Wrong("your copies are wrong", next="name tensors after their nodes, and weights like 'conv1.weight'")
