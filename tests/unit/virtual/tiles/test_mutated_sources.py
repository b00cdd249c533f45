"""Any source gives a result or a message: never another error, never a wait."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from edl_labs.virtual.tiles import Budget, TileError, evaluate, parse_kernels
from tests.unit.virtual.tiles.drawn_kernels import DrawnKernel
from tests.unit.virtual.tiles.public_kernels import SOURCE

EVERY = ["@triton.jit\ndef " + part for part in SOURCE.split("@triton.jit\ndef ")[1:]]
HELPERS = "".join(one for one in EVERY if "def leaky_relu" in one or "def silu" in one)
KERNELS = [one for one in EVERY if one not in HELPERS]
_OTHERS = ("None", "True", "-1", "0", "2.5", "'a'", "1<<62", "lambda:", "not", "while", "[::2]", "@", "**9**9", "")


def kind_of(piece: str) -> str:
    """What a piece of a source can be exchanged for."""
    if piece[:1].isdigit():
        return "number"
    return "word" if piece.isidentifier() else "operator" if set(piece) <= set("+-*/%<>=&|~") else ""


def mutated(rng: random.Random) -> str:
    """A kernel with one to three words, numbers or operators exchanged, mostly for others of its own."""
    pieces = re.findall(r"\w+|\s+|[-+*/%<>=&|~]+|.", rng.choice(KERNELS))
    places = [at for at, piece in enumerate(pieces) if kind_of(piece) and at > 6]
    for _ in range(rng.randint(1, 3)):
        at = rng.choice(places)
        alike = [pieces[one] for one in places if kind_of(pieces[one]) == kind_of(pieces[at])]
        pieces[at] = rng.choice(alike) if alike and rng.random() < 0.9 else rng.choice(_OTHERS)
    return HELPERS + "".join(pieces)


def outcome(source: str) -> str:
    """ "result" or "message"; everything else is raised."""
    try:
        module = parse_kernels(source)
        for name, function in list(module.kernels.items())[2:]:
            arguments = {one: _argument(one) for one in function.parameters}
            evaluate(module, name, (2,), arguments, budget=Budget(operations=2_000, elements=20_000_000))
    except TileError as error:
        assert str(error).strip()
        assert error.next
        return "message"
    return "result"


def _argument(name: str) -> object:
    if (name.isupper() and len(name) > 1) or name == "num_stages":
        return 16
    if "ptr" in name or name in ("X", "Y", "W", "B", "Mean", "Rstd"):
        kind = np.int32 if name.startswith(("labels", "segment", "packed")) else np.float32
        return np.zeros(4096, kind)
    return 0.5 if name in ("eps", "p", "scale") else 16


def tried(seeds: range) -> dict[str, int]:
    counts = {"result": 0, "message": 0}
    for seed in seeds:
        counts[outcome(mutated(random.Random(seed)))] += 1
    return counts


def test_some_mutated_sources() -> None:
    counts = tried(range(400))

    assert counts["message"] > 100
    assert counts["result"] > 20


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_mutated_sources() -> None:
    assert 20_000 == sum(tried(range(400, 20_400)).values())


def test_drawn_kernels_are_unlike_each_other() -> None:
    assert 50 == len({DrawnKernel(seed).source for seed in range(50)})
