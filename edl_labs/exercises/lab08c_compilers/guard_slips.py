"""Slips about guards: a sentence for each that cases carry digests of, and one for a first wrong decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SAID: dict[str, tuple[str, str]] = {
    "nothing is free": (
        "what changes is free from its second version on, sizes and numbers alike",
        "without that step every length and every learning rate costs a version, and the ninth runs eagerly",
    ),
    "numbers by value": (
        "a number that changes is free from its second version on",
        "the second value compiles once more, and is the last one to do so: a learning rate does not cost 8 versions",
    ),
    "floats by value": (
        "a float that changes is free from its second version on, as an int is",
        "the second value compiles once more, and is the last one to do so: a learning rate does not cost 8 versions",
    ),
    "numbers free at once": (
        "the first version of a number is for its value",
        "only a value that differs from one seen before makes it free",
    ),
    "flag is a number": (
        "a bool is no number here: it never becomes free",
        "isinstance(True, int) is true; ask for bool first",
    ),
    "flag missing": (
        "a bool is guarded by its value",
        "another branch is another program",
    ),
    "dtype missing": (
        "a version is for one dtype",
        "what was compiled for float32 cannot read float64",
    ),
    "rank missing": (
        "a version is for one number of dimensions",
        "zip() of two shapes ends with the shorter one: compare their lengths first",
    ),
    "layout missing": (
        "each version works for only one layout",
        "x.is_contiguous() tells: same sizes, other strides",
    ),
    "sizes never free": (
        "a size that changes is free from its second version on",
        "without that step every length costs a version, and the ninth runs eagerly",
    ),
    "sizes free at once": (
        "the first version of a size is for its value",
        "a size is compiled as free only when it differs from an earlier size",
    ),
    "all sizes free": (
        "only the sizes that changed are free",
        "go through the dimensions one by one",
    ),
    "one is a size": (
        "size 1 has versions of its own",
        "a size of 1 broadcasts, so a free size takes any from 2 on, and 1 is always guarded by value",
    ),
    "free within the range": (
        "a free size can take any value of 2 or more",
        "not only those between the sizes seen: what is compiled for a free size computes with every one",
    ),
    "one version a kind": (
        "a new version leaves the others where they are",
        "a version for a size of 1, say, does not take the place of the one whose sizes are free: keep a list",
    ),
    "rank frees nothing": (
        "once the number of dimensions has changed, every size is free",
        "that holds for what is compiled from then on, whatever its rank",
    ),
    "seen of a dtype": (
        "what was seen belongs to the argument, not to a version",
        "a size seen in float32 counts when float64 is compiled",
    ),
    "last one seen": (
        "you compare sizes and numbers only with the last call that made a version",
        "what has changed once stays free in every version that is made later",
    ),
    "old versions freed": (
        "existing versions keep the numbers for which they were made",
        "a number that changed is free only in versions that are made from then on",
    ),
    "newest version alone": (
        "you ask only the newest version",
        "a call hits if any of the versions fits",
    ),
    "no limit": (
        "a function keeps 8 versions",
        "calls that fit none of them run eagerly from then on",
    ),
    "another limit": (
        "you make a ninth version, but the limit is 8",
        "if a call fits none of the 8 versions, run it eagerly and add no version",
    ),
    "a version less": ("the eighth version is still made", "count the versions before one is added"),
    "limit before hits": (
        "you stop using the existing versions at the limit",
        "ask for a hit first; only a call that fits none runs eagerly",
    ),
    "eager is a recompile": (
        "at the limit nothing is compiled any more",
        "such a call has a word of its own",
    ),
    "break at every call": (
        "a break is met while compiling, not at a hit",
        "what breaks is compiled too, in pieces, and kept as a version: the next call of its kind is a hit",
    ),
    "condition ignored": (
        "a line under a bool counts only where that bool is true",
        "tracing follows the branch that the call takes",
    ),
    "no breaks": (
        "some lines end the graph",
        "which of them needs a number, or shows something, before the graph has run?",
    ),
    "item() does not break the graph": (
        "an .item() ends the graph",
        "Python wants a number that only running the graph can give",
    ),
    "float() does not break the graph": (
        "float() of a tensor ends the graph",
        "it calls .item()",
    ),
    "print() does not break the graph": (
        "a print ends the graph",
        "what it shows has to be computed by then, and Python shows it",
    ),
    "if is no break": (
        "an if on a tensor's values ends the graph",
        "which branch is taken is known only when the graph has run",
    ),
    "every if is a break": (
        "an if on what a guard holds fixed does not end the graph",
        "y.ndim is known while tracing",
    ),
    "where is a break": (
        "torch.where stays in the graph",
        "it computes with both, and chooses on the device",
    ),
}
_FIRST: dict[tuple[str, str], tuple[str, str]] = {
    ("recompile", "hit"): (
        "a version that fits was not used",
        "which earlier version takes these arguments? mind what is free by now",
    ),
    ("break", "hit"): (
        "a version that fits was not used, and a break was reported",
        "what was compiled in pieces is a version like others",
    ),
    ("eager", "hit"): ("a version that fits was not used at the limit", "hits need no room for a new version"),
    ("hit", "recompile"): (
        "a version was used that does not fit",
        "what differs between this call and the one that made the version?",
    ),
    ("hit", "break"): (
        "a version was used that does not fit, where a new one breaks",
        "what differs between this call and the one that made the version?",
    ),
    ("break", "recompile"): (
        "a break was reported where all lines stay in the graph",
        "which lines does this call run, and which of them needs a number from the device?",
    ),
    ("recompile", "break"): (
        "a break was not seen",
        "which lines does this call run, and which of them needs a number from the device?",
    ),
}


_ALWAYS = ("dtype", "layout", "number of dimensions", "verbose")


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, str]:
    """What differs between the arguments of two calls, by name, with both values; sizes where both have as many."""
    found = {part: (there["x"][part], here["x"][part]) for part in ("dtype", "layout")}
    sizes = there["x"]["sizes"], here["x"]["sizes"]
    found["number of dimensions"] = len(sizes[0]), len(sizes[1])
    if len(sizes[0]) == len(sizes[1]):
        found |= {f"size {at} of x": pair for at, pair in enumerate(zip(*sizes, strict=True))}
    found |= {name: (there[name], here[name]) for name in here if name != "x"}
    return {name: f"{name} ({one} there, {other} here)" for name, (one, other) in found.items() if one != other}


def why_it_fits(calls: Sequence[Mapping[str, Any]], right: Sequence[str], at: int) -> str:
    """The version that takes a call which hits, by the call that made it, and what else is other in that call.

    What is free in one version is free in all later ones of its kind. So the last one fits that has dtype, dimensions,
    layout and bool of the call, and sizes of 1 in the same places.
    """

    def is_kind(other: int) -> bool:
        ones = ([size == 1 for size in calls[one]["x"]["sizes"]] for one in (other, at))
        return not differences(calls[other], calls[at]).keys() & set(_ALWAYS) and next(ones) == next(ones)

    made = next(one for one in reversed(range(at)) if right[one] in ("recompile", "break") and is_kind(one))
    other = list(differences(calls[made], calls[at]).values())
    if not other:
        return f"call {made} made a version for these very arguments"
    return f"the version that call {made} made fits: what differs had changed before, so it is free: {', '.join(other)}"


def why_none_fits(calls: Sequence[Mapping[str, Any]], right: Sequence[str], at: int) -> str:
    """What is other in a call that fits no version than in the call most like it that made one; "" for the first."""
    made = [one for one in range(at) if right[one] in ("recompile", "break")]
    if not made:
        return "there is no version yet"
    like = min(reversed(made), key=lambda one: len(differences(calls[one], calls[at])))
    other = ", ".join(differences(calls[like], calls[at]).values())
    return f"of the calls that made versions, call {like} is most like this call, and differs in {other}"


def symptom(mine: str, right: str) -> tuple[str, str]:
    """What to say of one decision that is not right."""
    if right == "eager":
        return "this call finds 8 versions, and fits none", "count the versions that were made before it"
    if mine == "eager":
        return "there is still room for a version", "count the versions that were made before this call"
    return _FIRST[mine, right]
