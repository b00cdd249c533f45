"""decode_once: which transforms of a drawn chain may be done once, offline, without changing what the model sees."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import exercise
from edl_labs.errors import Wrong


@exercise("decode_once")
class DecodeOnce:
    """The transforms of a chain that may be done once, offline, without changing what the model sees.

    `student.move_offline(chain)` gives the places of all transforms that may be done once.
    """

    form: ClassVar[Any] = [0]

    def probe(self, student: Any, case: Any) -> Any:
        answer = student.move_offline(case)
        return list(answer) if isinstance(answer, (list, tuple, set, range)) else answer

    def yours(self, case: Any, got: Any) -> str:
        """The places, with the names of the transforms there."""
        return ", ".join(f"{place} ({case[place]['name']})" for place in got) or "no place"

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if any(type(place) is not int or not 0 <= place < len(case) for place in got):
            raise Wrong(
                "there is no such place in the chain",
                why=f"it has {len(case)} transforms, counted from 0",
                next="return a list of the places that may move offline",
            )
        for place in sorted(set(got) - set(want)):
            raise _should_stay(case, place, want)
        missing = sorted(set(want) - set(got))
        if missing:
            raise Wrong(
                "work that could be done once is done in every epoch",
                why=f"{case[missing[0]]['name']!r} (place {missing[0]}) disturbs nothing that stays",
                next="it need not come first: it must be able to change places with all before it that stay",
            )

    def show(self, case: Any) -> str:
        return "\n".join(
            f"{place}. {step['name']} ({step['kind']}{', random' if step['random'] else ''})"
            for place, step in enumerate(case)
        )


def _should_stay(case: Any, place: int, want: Any) -> Wrong:
    step = case[place]
    if step["random"]:
        return Wrong(
            "a random transform was done once and for all",
            why=f"{step['name']!r} (place {place}) would look the same in every epoch",
            next="what is drawn anew for each sample stays in the loader",
        )
    # Pairs that change places whatever the transforms are: pixels that only move or disappear keep their values, and
    # statistics of the whole image do not care where a pixel is.
    free = [{"point", "move"}, {"point", "cut"}, {"whole", "move"}]
    before = [case[i] for i in range(place) if i not in want]
    blocker = next(other for other in before if {step["kind"], other["kind"]} not in free)
    if {step["kind"], blocker["kind"]} == {"move", "cut"}:
        return Wrong(
            "a window and a change of places were exchanged",
            why=f"{step['name']!r} before {blocker['name']!r} shows the model another part of the image",
            next="mirror a small image and cut its left half, in both orders: are the pixels the same?",
        )
    if blocker["random"]:
        return Wrong(
            "a transform moved past a random one that it does not commute with",
            why=f"{step['name']!r} gives a different image when it comes before {blocker['name']!r}",
            next="try both orders on a small image: are the pixels the same?",
        )
    return Wrong(
        "a transform moved past one that has to stay",
        why=f"{blocker['name']!r} stays behind a random transform, and {step['name']!r} works on its result",
        next="what stays is an obstacle too, even where it is not random",
    )
