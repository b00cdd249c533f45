"""The cases of fit_a_link: tables of 8 bytes to 256 MiB with 2 % of noise."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("fit_a_link")
def tables(rng: Any) -> list[Case]:
    return [Case(given=_case(rng)) for _ in range(5)]


def _case(rng: Any) -> dict[str, Any]:
    alpha_s = float(rng.uniform(2e-6, 40e-6))
    rate = float(rng.choice([1e9, 5e9, 6e9, 6.8e9, 40e9])) * float(rng.uniform(0.8, 1.0))
    sizes = [8 << at for at in range(26)]
    noise = 1 + 0.02 * rng.uniform(-1, 1, size=len(sizes))
    took = [float(f"{(alpha_s + size / rate) * one:.5g}") for size, one in zip(sizes, noise, strict=True)]
    return {"sizes": sizes, "took_s": took, "ranks": int(rng.integers(3, 17))}
