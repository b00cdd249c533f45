"""The passages in `quoted/` stand in the decks, where the decks are at hand (they are not part of the project)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .decks import QUOTED

DECKS = Path(__file__).resolve().parents[3] / "shared" / "seeds"


@pytest.mark.parametrize("passage", sorted(QUOTED.glob("*.txt")), ids=lambda passage: passage.stem)
def test_a_passage_stands_in_its_deck(passage):
    decks = list(DECKS.glob(f"{passage.stem[:3]}_*.txt"))
    if not decks:
        pytest.skip("the decks lie beside the project only where the lectures were given along with it")
    deck = decks[0].read_text(encoding="utf-8").splitlines()

    assert [] == [line for line in passage.read_text(encoding="utf-8").splitlines() if line not in deck]
