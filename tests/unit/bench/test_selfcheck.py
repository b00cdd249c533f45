"""The self-check finds no bias where there is none, and finds one where there is."""

from __future__ import annotations

import json

import pytest
from scripted_clock import ScriptedClock
from selfcheck import Check, SelfCheck, selfcheck


class Working(ScriptedClock):
    """A clock on which reading is the only work, so that spins end by themselves."""


def test_spins_on_a_scripted_clock_have_no_bias():
    result = selfcheck(budget_s=0.3, clock=Working(cost_s=5e-8), seed=1)

    assert result.worst_bias < 0.005
    assert 10 == len(result.ratios)
    json.dumps(result.to_json())


@pytest.mark.slow
def test_a_clock_that_runs_fast_between_readings_is_found_out():
    class Fast(ScriptedClock):
        def now_s(self):
            return super().now_s() + (1e-5 if self.reads % 3 == 0 else 0.0)

    assert selfcheck(budget_s=0.3, clock=Fast(cost_s=5e-8), seed=1).worst_bias > 0.005


def test_bias_and_coverage_are_counted():
    checks = (Check("a", 1.0, 1.1, 1.05, 1.2), Check("b", 2.0, 2.0, 1.9, 2.1))
    result = SelfCheck(checks, checks)

    assert 0.1 == pytest.approx(result.worst_bias)
    assert 0.5 == result.coverage
    assert "1 are inside their 95 % intervals" in repr(result)
