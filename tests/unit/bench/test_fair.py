"""What one side has and the other lacks must not look like a ratio."""

from __future__ import annotations

import pytest
from scripted_clock import Noise, ScriptedClock, payload

from edl_labs.bench import compare


class SlowStart(ScriptedClock):
    """A clock whose first readings, which fall into the first side's warm-up, cost far more than later ones."""

    def now_s(self):
        self.t += 4e-6 if self.reads < 30 else 0.0
        return super().now_s()


@pytest.mark.slow
def test_an_empty_block_that_cost_more_on_one_side_makes_no_difference():
    wrong = 0
    for seed in range(60):
        clock = SlowStart(cost_s=5e-8)
        call = payload(clock, 1e-4, noise=Noise("drift", seed))
        c = compare({"a": call, "b": call}, clock=clock, budget_s=0.2, precision=0.0, seed=seed)
        wrong += not c.low <= 1 <= c.high

    assert wrong <= 8
