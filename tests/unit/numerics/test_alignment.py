"""One rule of bytes makes every cell of the decks' tables."""

from __future__ import annotations

import json

import pytest

from edl_labs.errors import UsageError
from edl_labs.numerics import alignment, alignment_multiple


def test_each_cell_of_the_tables_is_bytes_over_element_size() -> None:
    decks = {"int8": (16, 128), "fp16": (8, 64), "tf32": (4, 32), "fp64": (2, 16)}

    assert decks == {name: tuple(alignment_multiple(name, rule_bytes=rule) for rule in (16, 128)) for name in decks}


def test_padding_goes_to_the_next_multiple_and_no_further() -> None:
    for size in range(1, 300):
        (found,) = alignment({"n": size}, "fp16").sizes

        assert size <= found.padded < size + 8
        assert 0 == found.padded % 8
        assert found.aligned == (found.padded == size)


def test_padding_two_sizes_multiplies_the_work() -> None:
    found = alignment({"inputs": 1000, "outputs": 33}, "fp16")

    assert (False, pytest.approx(40 / 33 - 1)) == (found.aligned, found.extra)
    assert "outputs 33 → 40" in repr(found)
    assert json.loads(json.dumps(found.to_json()))["aligned"] is False


@pytest.mark.parametrize(("dtype", "multiple"), [("torch.float16", 8), ("bf16", 8), ("e4m3fn", 16), ("fp32", 4)])
def test_dtypes_are_known_by_every_name(dtype: str, multiple: int) -> None:
    assert multiple == alignment_multiple(dtype)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: alignment_multiple("fp16", rule_bytes=64), "no alignment rule"),
        (lambda: alignment({"n": 0}, "fp16"), "whole number"),
        (lambda: alignment({"n": 8.0}, "fp16"), "whole number"),
        (lambda: alignment({"n": 8}, "fp17"), "there is no format"),
    ],
)
def test_what_has_no_alignment_is_refused(make, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        make()
