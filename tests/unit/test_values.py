"""Results as values: JSON there and back, short text, frames, and hooks for pictures."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from edl_labs.errors import Sentence, UsageError
from edl_labs.presenters import present, register_presenter
from edl_labs.values import Value


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


@dataclass(frozen=True, repr=False)
class Part(Value):
    name: str
    cost_s: float


@dataclass(frozen=True, repr=False)
class WholeThing(Value):
    ROWS = "parts"
    DERIVED = ("total_s",)
    SCHEMA = 3

    name: str
    parts: tuple[Part, ...]
    mode: Mode = Mode.FAST
    best: Part | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    pairs: tuple[tuple[str, int], ...] = ()

    @property
    def total_s(self) -> float:
        return sum(part.cost_s for part in self.parts)


@dataclass(frozen=True, repr=False)
class Kept(Value):
    OMITTED = ("program",)

    rates: Mapping[int, float]
    program: tuple[str, ...] = ()


WHOLE = WholeThing(
    "step", tuple(Part(f"p{i}", i / 8) for i in range(9)), Mode.SLOW, Part("p", math.inf), {"a": 1.5}, (("x", 2),)
)


def test_json_holds_kind_schema_fields_and_derived() -> None:
    tree = WHOLE.to_json()

    assert ("whole_thing", 3, 4.5) == (tree["kind"], tree["schema"], tree["total_s"])
    assert {"kind": "part", "schema": 1, "name": "p", "cost_s": "inf"} == tree["best"]


def test_text_of_json_comes_back_equal() -> None:
    assert WHOLE == WholeThing.from_json(json.dumps(WHOLE.to_json(), allow_nan=False))


def test_omitted_fields_stay_out_of_json_and_whole_numbers_are_keys_again() -> None:
    kept = Kept({1: 0.5}, program=("launch",))

    assert {"kind": "kept", "schema": 1, "rates": {"1": 0.5}} == kept.to_json()
    assert Kept({1: 0.5}) == Kept.from_json(kept.to_json())


def test_a_part_with_a_default_may_be_missing() -> None:
    tree = WHOLE.to_json()
    del tree["pairs"]

    assert () == WholeThing.from_json(tree).pairs


@pytest.mark.parametrize(
    "changed",
    [{"schema": 2}, {"kind": "part"}, {"name": 7}, {"parts": [{"name": "x"}]}, {"mode": "middling"}, {"parts": None}],
)
def test_another_tree_is_refused_in_words(changed: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="is not a whole_thing"):
        WholeThing.from_json({**WHOLE.to_json(), **changed})


@pytest.mark.parametrize("text", ["", "[1]", "{", "null"])
def test_text_that_is_no_tree_is_refused_in_words(text: str) -> None:
    with pytest.raises(UsageError, match="is not a part"):
        Part.from_json(text)


def test_a_long_value_has_a_short_repr() -> None:
    assert "Part(name='p', cost_s=inf)" == repr(WHOLE.best)
    assert "parts=<9 items>" in repr(WHOLE)


def test_rows_become_a_frame() -> None:
    pytest.importorskip("pandas", reason="to_frame() is for those who have pandas; it is not installed here")

    assert [i / 8 for i in range(9)] == list(WHOLE.to_frame()["cost_s"])
    assert 1 == len(Part("p", 1.0).to_frame())


def test_without_pandas_to_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)

    with pytest.raises(UsageError, match="pip install pandas"):
        WHOLE.to_frame()


def test_a_registered_presenter_shows_a_value_and_an_unknown_way_is_refused() -> None:
    register_presenter("text for a test", "builtins:repr")

    assert repr(WHOLE) == present("text for a test", WHOLE)
    with pytest.raises(UsageError, match="no presenter creates a smell"):
        present("smell", WHOLE)


def test_a_value_with_nan_equals_its_round_trip_and_no_other() -> None:
    @dataclass(frozen=True, repr=False)
    class Spread(Value):
        ends: tuple[float, float]
        by_name: dict[str, float]

    spread = Spread((math.nan, 1.0), {"copy": float("nan")})

    assert spread == Spread.from_json(spread.to_json())
    assert spread != Spread((math.nan, 2.0), {"copy": math.nan})
    assert spread != Spread((math.nan, 1.0), {"copy": 0.0})
    assert spread != (math.nan, 1.0)


def test_json_holds_plain_text_where_the_value_holds_a_sentence() -> None:
    tree = Part(Sentence("{name} is wrong", name="area"), 1.0).to_json()

    assert (str, "area is wrong") == (type(tree["name"]), tree["name"])
