"""A kernel is accepted exactly if Triton's compiler accepts it, but for what the language leaves out."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from edl_labs.virtual.tiles import TileError, parse_kernels
from edl_labs.virtual.tiles.replay import compiled_for
from tests.unit.virtual.tiles.acceptance_cases import BODIES, OUTSIDE, PARAMETERS, source_of
from tests.unit.virtual.tiles.compiler_oracle import compiler_refuses

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton has wheels for Linux alone")


def refusal(body: str) -> str:
    try:
        compiled_for(parse_kernels(source_of(body)), "kernel", PARAMETERS)
    except TileError as error:
        return str(error)
    return ""


def differences(folder: Path, bodies: list[str]) -> list[tuple[str, str, str]]:
    """Bodies of which one says yes and the other no, with what each says."""
    asked = [(body, compiler_refuses(folder, source_of(body), PARAMETERS, f"k{n}")) for n, body in enumerate(bodies)]
    both = [(body, theirs, refusal(body)) for body, theirs in asked if body not in OUTSIDE]
    return [one for one in both if bool(one[1]) != bool(one[2])]


def test_a_sample_of_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))

    assert [] == differences(tmp_path, BODIES[::29])


@pytest.mark.slow
def test_all_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))

    assert [] == differences(tmp_path, BODIES)


def test_what_is_left_out_is_refused_with_an_alternative() -> None:
    said = {body: refusal(body) for body in OUTSIDE}

    assert all("next: " in text for text in said.values()), said


def test_there_are_enough_of_both_kinds() -> None:
    refused = sum(bool(refusal(body)) for body in BODIES)

    assert refused >= 200
    assert len(BODIES) - refused >= 200
