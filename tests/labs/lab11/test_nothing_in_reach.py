"""A host function that walks frames and the garbage collector finds what it was given, and nothing that is hidden."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from edl_labs.checks import Case
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.probe_process import ProbeProcess

EXERCISES = {one.name: one for one in load_lab("lab11_tiles") if one.spec.source_is_evidence}
GIVEN = 123_456_789_012_345  # in the given half: the walk has to find it
# The walk knows digests alone: numbers in its own code would be found there.
WALK = """
import gc, hashlib, sys
from edl_labs.virtual.tiles import jit

@jit
def nothing_kernel(x_ptr): pass

def numbers(thing, seen, depth=0):
    if type(thing) in (int, float):
        yield thing
    if type(thing) not in (dict, list, tuple, set) or depth > 6 or id(thing) in seen:
        return
    seen.add(id(thing))
    for item in list(thing.values() if type(thing) is dict else thing):
        yield from numbers(item, seen, depth + 1)

def host(x, *more):
    found, seen, frame = set(), set(), sys._getframe()
    while frame is not None:
        for names in (frame.f_locals, frame.f_globals):
            found.update(numbers(dict(names), seen))
        frame = frame.f_back
    for thing in gc.get_objects():
        found.update(numbers(thing, seen))
    nothing_kernel[(1,)](x, *(one for one in found if hashlib.sha256(repr(one).encode()).hexdigest() in WANTED))
    return x
"""


def hidden_numbers(cases: list[Case]) -> Iterator[float]:
    """The seeds of values, and what known mistakes give, where it is no short number that occurs anywhere."""
    for case in cases:
        yield case.hidden["seed"]
        for values in case.hidden.get("slips", {}).values():
            yield from (value for value in values if len(repr(value)) > 8)


def digest(number: float) -> str:
    return hashlib.sha256(repr(number).encode()).hexdigest()


@pytest.fixture(scope="module")
def walker() -> Iterator[ProbeProcess]:
    """A student's process that has the walk and torch; each exercise goes on in a fork of it."""
    with ProbeProcess([("cell", f"import torch\n{WALK}")]) as process:
        yield process


def found(walker: ProbeProcess, name: str, cases: list[Case]) -> list[Any]:
    """What the walk in a student's process finds of the hidden numbers and of GIVEN."""
    host = EXERCISES[name].spec.host  # type: ignore[attr-defined]
    wanted = {digest(one) for one in [GIVEN, *hidden_numbers(cases)]}
    with walker.fork([("cell", f"WANTED = {wanted!r}\n{host} = host\n")]) as process:
        records = process.collect(name, cases[:1])
    assert process.error is None
    assert "value" in records[0], records
    return list(json.loads(records[0]["value"]["program"])["launches"][0]["arguments"][1:])


@pytest.mark.parametrize("name", EXERCISES)
def test_a_walk_finds_what_is_given_and_nothing_hidden(name: str, walker: ProbeProcess) -> None:
    drawn = EXERCISES[name].draw_cases(20_261_127)

    assert [GIVEN] == found(
        walker, name, [Case(given={**one.given, "more": GIVEN}, hidden=one.hidden) for one in drawn]
    )


def test_the_walk_would_find_a_seed_that_is_given(walker: ProbeProcess) -> None:
    drawn = EXERCISES["row_softmax"].draw_cases(20_261_127)
    seed = drawn[0].hidden["seed"]
    leaky = [Case(given={**one.given, "kept": seed}, hidden=one.hidden) for one in drawn]

    assert [seed] == found(walker, "row_softmax", leaky)
