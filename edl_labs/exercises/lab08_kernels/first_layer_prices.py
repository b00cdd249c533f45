"""first_layers: stems of networks priced layer by layer, what is computed and what is moved asked apart."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab08_kernels.stem_slips import HANDED, SAID, SHAPES, TOTALS
from edl_labs.exercises.slip_digests import digest, named_slip
from edl_labs.units import byte_rate

_FREE = 1e40  # per second: what computes or moves at this rate costs nothing
CLOSEST = 1e-13  # what free things still cost, in seconds
PARTS = {"FLOP": {"byte_per_s": _FREE}, "bytes": {"flop_per_s": _FREE}}


@exercise("first_layers")
class FirstLayers(Exercise):
    """`stem_s` of each layer alone, of the layers up to each, and of the stem; FLOP alone, bytes alone, and both."""

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        def asked(layers: Any, **changed: float) -> Any:
            stem = {"input": tuple(given["input"]), "layers": [{**one} for one in layers]}
            return student.stem_s(stem, {**given["machine"], **changed})

        layers = given["layers"]
        return {
            "alone": {part: [asked([one], **free) for one in layers] for part, free in PARTS.items()},
            "upto": {
                part: [asked(layers[: at + 1], **free) for at in range(len(layers))] for part, free in PARTS.items()
            },
            "seconds": asked(layers),
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for part in PARTS:
            for layer, found, right in zip(case["layers"], got["alone"][part], want["alone"][part], strict=True):
                if not close(found, right, atol=CLOSEST):
                    why = f"with {_a(layer)} as the only layer, {_apart(case, part, found, right)}"
                    then = "check this layer's row of the table, column by column"
                    raise Wrong(f"your {part} of a layer are wrong", why=why, next=then)
        for at, layer in enumerate(case["layers"]):
            for part in PARTS:
                found, right = got["upto"][part][at], want["upto"][part][at]
                if not close(found, right, atol=CLOSEST):
                    before = _a(case["layers"][at - 1])
                    why = f"every layer is right on its own, but the {layer['kind']} after {before} is wrong"
                    then = "which channels, height and width does each kind pass on?"
                    raise Wrong(
                        "in your function, a layer does not get the output shape of the previous layer",
                        why=why,
                        next=then,
                    )
        if not close(got["seconds"], want["seconds"]):
            why = f"got {got['seconds']:.4g} s, expected {want['seconds']:.4g} s; FLOP alone and bytes alone are right"
            then = "use the longer of the two times, layer by layer"
            raise Wrong("your function combines the two times of a layer wrongly", why=why, next=then)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The slip that gives what all layers have alone; where these are right, the one that gives all stems."""
        if not _all_alike(got, want, "alone"):
            return named_slip(cases, _digests(got, "alone"), SAID)
        if not _all_alike(got, want, "upto"):
            known = named_slip(cases, _digests(got, "upto"), HANDED, of="handing_on")
            if known is not None:
                return known
            for kind, what, why, then in SHAPES:
                if all(_is_off_behind(kind, *one) for one in zip(cases, got, want, strict=True)):
                    return Wrong(what, why=why, next=then)
            return None
        for rule, what, why, then in TOTALS:
            if _alike([one["seconds"] for one in got], [rule(one["alone"], one["upto"]) for one in want]):
                return Wrong(what, why=why, next=then)
        return None

    def student_inputs(self, case: Any) -> Any:
        """A stem and a machine."""
        return {"stem": {"input": tuple(case["input"]), "layers": case["layers"]}, "machine": case["machine"]}

    def format_case(self, case: Any) -> str:
        """The stem and the machine."""
        layers = ", ".join(_named(one) for one in case["layers"])
        machine = case["machine"]
        return (
            f"input {tuple(case['input'])}: {layers}; {machine['flop_per_s']:.3g} FLOP/s, "
            f"{byte_rate(machine['byte_per_s'])}, multiples of {machine['multiple']}"
        )

    def format_answer(self, case: Any, got: Any) -> str:
        """The stem's price."""
        return f"{got['seconds']:.4g} s in all"


def _named(layer: Any) -> str:
    fields = ", ".join(f"{name} {value}" for name, value in layer.items() if name != "kind")
    return f"{layer['kind']} ({fields})" if fields else str(layer["kind"])


def _a(layer: Any) -> str:
    kind = str(layer["kind"])
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _apart(case: Any, part: str, found_s: float, right_s: float) -> str:
    """Both counts, and where they look alike the difference."""
    rate = case["machine"]["flop_per_s" if part == "FLOP" else "byte_per_s"]
    found, right = found_s * rate, right_s * rate
    less = right - found
    if abs(less) > 0.01 * right:
        return f"got {found:.4g} {part}, expected {right:.4g}"
    return f"there are {abs(less):,.0f} {part} too {'few' if less > 0 else 'many'}; expected {right:.4g}"


def _alike(got: list[Any], want: list[Any]) -> bool:
    return all(close(one, other, atol=CLOSEST) for one, other in zip(got, want, strict=True))


def _all_alike(got: list[Any], want: list[Any], which: str) -> bool:
    return all(
        _alike(one[which][part], other[which][part]) for one, other in zip(got, want, strict=True) for part in PARTS
    )


def _digests(got: list[Any], which: str) -> list[str]:
    return [digest((price for part in PARTS for price in one[which][part]), least=CLOSEST) for one in got]


def _is_off_behind(kind: str, case: Any, got: Any, want: Any) -> bool:
    """Whether stems are right up to the layer behind the first one of this kind, and wrong from there on."""
    kinds = [one["kind"] for one in case["layers"]]
    right = [
        all(close(got["upto"][part][at], want["upto"][part][at], atol=CLOSEST) for part in PARTS)
        for at in range(len(kinds))
    ]
    if kind not in kinds[:-1]:
        return all(right)
    return right.index(False) > kinds.index(kind) if False in right else False
