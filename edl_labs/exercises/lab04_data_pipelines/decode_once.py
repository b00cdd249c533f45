"""decode_once: which transforms of a drawn chain may be done once, offline, without changing what the model sees."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import exercise
from edl_labs.errors import Wrong

# What a transform does to an image, with examples: fixed ones, and ones drawn anew for each sample.
NAMES = {
    "decode": ("decode a JPEG", "decode a PNG"),
    "point": ("normalise with fixed numbers", "apply a gamma", "clip to a range"),
    "move": ("mirror", "turn by 90°", "transpose"),
    "cut": ("cut a fixed window",),
    "mix": ("resize", "blur", "undo the lens's distortion"),
    "whole": ("subtract the image's own mean", "equalise the histogram"),
}
RANDOM_NAMES = {
    "point": ("random brightness", "random gamma"),
    "move": ("random flip", "random quarter turn"),
    "cut": ("random crop",),
    "mix": ("random blur", "random resize"),
}
# Pairs of kinds that change places whatever the transforms are: pixels that only move or disappear keep their values,
# and statistics of the whole image do not care where a pixel is. tests/labs tries each pair on images.
_FREE = [{"point", "move"}, {"point", "cut"}, {"whole", "move"}]


@exercise("decode_once")
class DecodeOnce:
    """The transforms of a chain that may be done once, offline, without changing what the model sees.

    `student.move_offline(chain)` gives the places of all transforms that may be done once.
    """

    def cases(self, rng: Any) -> list[Any]:
        fixed = [
            ["decode", "mix", "~cut", "point"],
            ["decode", "~move", "whole", "point"],
            ["decode", "~cut", "mix", "point"],
            ["decode", "~point", "point", "~move", "point"],
            ["decode", "mix", "point", "whole"],
            ["decode", "~cut", "whole", "point"],
        ]
        drawn = [_drawn(rng, int(rng.integers(4, 8))) for _ in range(8)]
        return [[_transform(rng, kind) for kind in kinds] for kinds in [*fixed, *drawn]]

    def probe(self, student: Any, case: Any) -> Any:
        return [int(place) for place in student.move_offline(case)]

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
    before = [case[i] for i in range(place) if i not in want]
    blocker = next(other for other in before if {step["kind"], other["kind"]} not in _FREE)
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


def _drawn(rng: Any, length: int) -> list[str]:
    kinds = ["decode"]
    while len(kinds) < length:
        kind = str(rng.choice(["point", "move", "cut", "mix", "whole"]))
        kinds.append("~" + kind if kind in RANDOM_NAMES and rng.random() < 0.4 else kind)
    return kinds


def _transform(rng: Any, kind: str) -> dict[str, Any]:
    is_random, kind = kind.startswith("~"), kind.removeprefix("~")
    name = str(rng.choice((RANDOM_NAMES if is_random else NAMES)[kind]))
    return {"name": name, "kind": kind, "random": is_random}
