"""Text for quantities keeps the digits asked for."""

from __future__ import annotations

import pytest

from edl_labs import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (1.0, "1 s"),
        (0.9996, "1 s"),
        (0.5, "500 ms"),
        (-2.5e-6, "-2.5 µs"),
        (1.234e-9, "1.23 ns"),
        (1e-15, "0.001 ps"),
        (float("inf"), "inf s"),
        (89, "89 s"),
        (90, "1.5 min"),
        (86400 * 11.574, "11.6 d"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert text == units.seconds(value)


@pytest.mark.parametrize(
    ("value", "text"), [(1e12, "1 TB"), (999.6, "1 kB"), (40e6, "40 MB"), (12, "12 B"), (2.039e12, "2.04 TB")]
)
def test_byte_count(value: float, text: str) -> None:
    assert text == units.byte_count(value)


def test_rates_and_fractions() -> None:
    assert "312 TFLOP/s" == units.flop_rate(311.87e12)
    assert "2.04 TB/s" == units.byte_rate(2.039e12)
    assert "50.46 %" == units.percent(0.504630, digits=4)
