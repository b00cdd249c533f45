"""Slips about guards: a sentence for each that cases carry digests of, and one for a first wrong decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SAID: dict[str, tuple[str, str]] = {
    "nothing is free": (
        "your code never makes a size or a number free",
        "make a value free when it changes: otherwise every length and every learning rate costs a version",
    ),
    "numbers by value": (
        "your code never makes a number free",
        "make a number free when it changes: a changing learning rate must not cost 8 versions",
    ),
    "floats by value": (
        "your code makes an int free, but never a float",
        "make a float free when it changes: a changing learning rate must not cost 8 versions",
    ),
    "numbers free at once": (
        "your code makes a number free in its first version",
        "guard its value, and make it free only when a later value differs",
    ),
    "flag is a number": (
        "your code makes a bool free, as if it were a number",
        "test for bool first, because isinstance(True, int) is true",
    ),
    "flag missing": (
        "your code does not guard the value of a bool",
        "compare the bool as well: a different branch is a different program",
    ),
    "dtype missing": (
        "your code does not guard the dtype",
        "compare the dtype: code compiled for float32 cannot read float64",
    ),
    "rank missing": (
        "your code does not guard the number of dimensions",
        "compare the lengths of two shapes first: zip() stops at the end of the shorter one",
    ),
    "layout missing": (
        "your code does not guard the layout",
        "compare x.is_contiguous(): tensors of equal sizes can have different strides",
    ),
    "sizes never free": (
        "your code never makes a size free",
        "make a size free when it changes: otherwise every length costs a version",
    ),
    "sizes free at once": (
        "your code makes a size free in its first version",
        "guard its value, and make it free only when it differs from an earlier size",
    ),
    "all sizes free": (
        "your code makes all sizes free when one of them changes",
        "decide separately for each dimension",
    ),
    "one is a size": (
        "your code treats a size of 1 like any other size",
        "always guard a size of 1 by its value, and let a free size accept 2 or more, because a size of 1 broadcasts",
    ),
    "free within the range": (
        "your code lets a free size accept only values between the sizes seen before",
        "accept any size of 2 or more: what is compiled for a free size can compute with all of them",
    ),
    "one version a kind": (
        "in your code, a new version replaces an earlier one",
        "keep a list: a version for a size of 1, for example, does not replace the one whose sizes are free",
    ),
    "rank frees nothing": (
        "your code does not make all sizes free after the number of dimensions has changed",
        "make every size free in the versions made from then on, for any number of dimensions",
    ),
    "seen of a dtype": (
        "your code keeps the values seen separately for each dtype",
        "keep one list of values for each argument: a size seen in float32 also counts when float64 is compiled",
    ),
    "last one seen": (
        "your code compares sizes and numbers only with the last call that made a version",
        "once a value has changed, keep it free in every later version",
    ),
    "old versions freed": (
        "your code also makes a number free in existing versions",
        "make a number that has changed free only in the versions made from then on",
    ),
    "newest version alone": (
        "your code tries only the newest version",
        "try every version: a call is a hit if any of them fits",
    ),
    "no limit": (
        "your code makes more than 8 versions",
        "if a call fits none of the 8 versions, run it eagerly and add no version",
    ),
    "another limit": (
        "your code makes a ninth version, but the limit is 8",
        "if a call fits none of the 8 versions, run it eagerly and add no version",
    ),
    "a version less": (
        "your code makes only 7 versions, but the limit is 8",
        "count the versions before you add one",
    ),
    "limit before hits": (
        "your code stops using the existing versions at the limit",
        "look for a hit first: only a call that fits no version runs eagerly",
    ),
    "eager is a recompile": (
        "your code reports a recompile at the limit, where nothing more is compiled",
        "which of the four decisions describes such a call?",
    ),
    "break at every call": (
        "your code reports a break for a call that fits an existing version",
        "report a hit: a version whose graph breaks is compiled in pieces, and kept like any other version",
    ),
    "condition ignored": (
        "your code counts a line even if the bool on which that line depends is false",
        "count only the lines that this call runs: tracing follows the branch that the call takes",
    ),
    "no breaks": (
        "your code never reports a break",
        "which lines need a number, or print something, before the graph has run?",
    ),
    "item() does not break the graph": (
        "your code does not report a break at .item()",
        "end the graph there: Python needs a number that is known only once the graph has run",
    ),
    "float() does not break the graph": (
        "your code does not report a break at float() of a tensor",
        "end the graph there: float() calls .item()",
    ),
    "print() does not break the graph": (
        "your code does not report a break at print()",
        "end the graph there: Python can print a value only once it has been computed",
    ),
    "if is no break": (
        "your code does not report a break at an `if` on a tensor's values",
        "end the graph there: the branch is known only once the graph has run",
    ),
    "every if is a break": (
        "your code reports a break at an `if` on a value that a guard fixes",
        "keep that `if` in the graph: y.ndim is known during tracing",
    ),
    "where is a break": (
        "your code reports a break at torch.where",
        "keep it in the graph: torch.where selects between both values on the device",
    ),
}
_FIRST: dict[tuple[str, str], tuple[str, str]] = {
    ("recompile", "hit"): (
        "your code did not use a version that fits",
        "which earlier version accepts these arguments? Consider which values are free by now",
    ),
    ("break", "hit"): (
        "your code reported a break instead of using a version that fits",
        "use a version that was compiled in pieces like any other version",
    ),
    ("eager", "hit"): (
        "at the limit, your code did not use a version that fits",
        "look for a hit first: a hit does not need room for a new version",
    ),
    ("hit", "recompile"): (
        "your code used a version that does not fit",
        "what differs between this call and the one that made the version?",
    ),
    ("hit", "break"): (
        "your code used a version that does not fit; this call needs a new version, whose graph breaks",
        "what differs between this call and the one that made the version?",
    ),
    ("break", "recompile"): (
        "your code reported a break, but all lines stay in the graph",
        "which lines does this call run, and does any of them need a number from the device?",
    ),
    ("recompile", "break"): (
        "your code did not report a break",
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
    return {
        name: f"{name} ({one} in that call, {other} in this one)"
        for name, (one, other) in found.items()
        if one != other
    }


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
        return f"call {made} made a version for exactly these arguments"
    return f"the version made for call {made} fits; what differs had changed before, and is free: {', '.join(other)}"


def why_none_fits(calls: Sequence[Mapping[str, Any]], right: Sequence[str], at: int) -> str:
    """What is other in a call that fits no version than in the call most like it that made one; "" for the first."""
    made = [one for one in range(at) if right[one] in ("recompile", "break")]
    if not made:
        return "there is no version yet"
    like = min(reversed(made), key=lambda one: len(differences(calls[one], calls[at])))
    other = ", ".join(differences(calls[like], calls[at]).values())
    return f"of the calls that made versions, call {like} is the most similar to this one; it differs in {other}"


def symptom(mine: str, right: str) -> tuple[str, str]:
    """What to say of one decision that is not right."""
    if right == "eager":
        what = "there are already 8 versions, and this call does not fit any of them"
        return what, "count the versions that were made before this call"
    if mine == "eager":
        what = "your code ran a call eagerly although there was room for another version"
        return what, "count the versions that were made before this call"
    return _FIRST[mine, right]
