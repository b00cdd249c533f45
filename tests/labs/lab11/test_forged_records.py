"""Records that no host function leaves, one for each field and value: 0 points and a sentence, never an exception."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from edl_labs.checks import Outcome, judge
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.exercises.lab11_tiles.host_programs import host_evidence, meta_tensor
from edl_labs.virtual.tiles import jit, tl
from tests.labs.lab11.test_judged_kernels import CASE, evidence

INCOMPARABLE = "the result could not be compared"
LIES = (
    *(None, True, False, 0, -1, 1, 3, 2**31, -(2**31), 2**63, 2**100, 0.5, -0.0, 1e300, float("inf"), float("nan")),
    *("", "x", "y", "scale_kernel", "float64", "object", "O", "V8", "a" * 10_000, "\0", "٣"),
    *([], [3], [1, 1, 1, 1], [[3]], {}, {"tensor": "x"}, {"tensor": "z"}, {"tensor": []}, {"tensor": "x", "n": 1}),
)
SCALE = next(one for one in load_lab("lab11_tiles") if one.name == "scale_shift_relu")
RECORD = json.loads(evidence()["program"])
Place = tuple[str | int, ...]


def places(node: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, item in items:
        yield from places(item, (*place, step))


def changed(place: Place, value: Any) -> Any:
    """The right record with another value at one place."""
    whole = [copy.deepcopy(RECORD)]
    node: Any = whole
    for step in (path := (0, *place))[:-1]:
        node = node[step]
    node[path[-1]] = value
    return whole[0]


def without(place: Place) -> Any:
    whole = copy.deepcopy(RECORD)
    node: Any = whole
    for step in place[:-1]:
        node = node[step]
    node.pop(place[-1])
    return whole


def outcome(text: str, **more: Any) -> Outcome:
    return judge(SCALE, [CASE], [{"value": {**evidence(), "program": text, **more}}], [{}], points=3.0)


def forged() -> Iterator[tuple[Place, str, str]]:
    for place in places(RECORD):
        yield from ((place, repr(lie)[:40], json.dumps(changed(place, lie))) for lie in LIES)
        if place:
            yield place, "left out", json.dumps(without(place))


def test_every_lie_about_a_record_gets_a_sentence() -> None:
    found = {(place, lie): outcome(text) for place, lie, text in forged()}

    assert [] == [key for key, one in found.items() if one.what == INCOMPARABLE]
    assert [] == [key for key, one in found.items() if one.points < 3 and not (one.what and one.why and one.next)]


def test_only_lies_that_change_nothing_keep_the_points() -> None:
    kept = [(place, text) for place, _, text in forged() if outcome(text).points == 3.0]

    assert {("allocated", 0, "zeros")} == {place for place, text in kept if json.loads(text) != RECORD}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        '{"a": ' * 5_000 + "1" + "}" * 5_000,
        "9" * 10_000,
        "NaN",
        json.dumps(RECORD)[:-1] + ', "returned": "y"}',
        json.dumps(RECORD).replace("300", "1e400"),
        json.dumps(RECORD).replace("[3]", "[1e400]"),
        json.dumps({**RECORD, "allocated": RECORD["allocated"] * 2}),
        json.dumps({**RECORD, "launches": RECORD["launches"] * 101}),
        json.dumps({**RECORD, "more": 1}),
        " " * 300_000,
        "\ud800",
    ],
    ids=[
        *("empty", "deep list", "deep object", "digits", "nan", "twice", "1e400", "grid", "names", "launches"),
        *("entry", "long", "surrogate"),
    ],
)
def test_a_text_that_is_no_record_is_refused(text: str) -> None:
    said = outcome(text)

    assert (0.0, "The record of the host function cannot be used.") == (said.points, said.what)
    assert said.why


@pytest.mark.parametrize("field", ["source", "ran"])
@pytest.mark.parametrize(
    "lie", [[], [""], ["("], ["\0"], ["@jit\ndef scale_kernel(): x"], ["@jit\ndef scale_kernel(*a): x"]]
)
def test_forged_texts_get_a_sentence(field: str, lie: list[str]) -> None:
    said = outcome(evidence()["program"], **{field: lie})

    assert said.what != INCOMPARABLE
    assert (said.points == 3.0) == (field == "ran")


@pytest.mark.parametrize(
    ("launch", "text"),
    [
        ({"arguments": [*RECORD["launches"][0]["arguments"], 128, 5]}, "has 6 parameters, but the host passes 7"),
        ({"named": {"BLOCK": 128, "n": 300}}, "`n` is passed twice"),
        ({"grid": [-3]}, "A grid must consist of one to three whole numbers of 0 or more"),
        ({"grid": [1 << 30]}, "more than 1,048,576 programs"),
    ],
    ids=["too many", "twice", "negative", "large"],
)
def test_launches_that_a_careless_host_makes_are_explained(launch: dict[str, Any], text: str) -> None:
    said = outcome(json.dumps({**RECORD, "launches": [{**RECORD["launches"][0], **launch}]}))

    assert 0.0 == said.points
    assert text in said.what


@jit
def nothing_kernel(x_ptr, BLOCK: tl.constexpr):  # noqa: N803  (Triton's way to write constants)
    pass


def test_options_of_the_compiler_and_constexprs_are_no_part_of_a_record() -> None:
    def host(x: Any) -> Any:
        nothing_kernel[(1,)](x, BLOCK=tl.constexpr(16), num_warps=4)
        return x

    program = json.loads(host_evidence(host, {"x": meta_tensor((4,), "float32")}, ())["program"])

    assert {"BLOCK": 16} == program["launches"][0]["named"]
