"""A program of looks and puts that is none is refused, whatever it is made of."""

from __future__ import annotations

from typing import Any

import pytest

from edl_labs.virtual.bin_tree import replay_bins
from edl_labs.virtual.errors import ReplayError


@pytest.mark.parametrize("action", [{"a": 1}, [], [1, 2, 3], 5, None, "a", [10**9, 1], ["0", "1"]])
def test_a_malformed_action_is_a_replay_error(action: Any) -> None:
    with pytest.raises(ReplayError, match="action 0 is not possible"):
        replay_bins([action], 100, bins=4)
