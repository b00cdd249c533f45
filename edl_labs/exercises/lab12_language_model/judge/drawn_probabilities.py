"""The cases of speculate: distributions, passes with and without a refused token, draftings, and known mistakes."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.slip_digests import digest

_APART = 1e-3  # between a uniform and what it is compared with, and relatively between the best length and the next
_TRIES = 5000  # a pass that ends in the middle is one draw in three
_ENDS = ("all", "first", "middle")  # where a pass ends


@case_source("speculate")
def distributions(rng: Any) -> list[Case]:
    return [_case(rng, words) for words in (4, 6, 9)]


def _case(rng: Any, words: int) -> Case:
    p, q = _two_distributions(rng, words)
    passes = [_pass(rng, words, end) for end in rng.permutation([*_ENDS, "all", "middle"])] + [_equal_pass(rng, words)]
    draftings = [_drafting(rng, kind) for kind in ("none", "some", "some", "many")] + [_equal_drafting(rng)]
    given = {"p": p, "q": q, "passes": passes, "draftings": draftings}
    return Case(given=given, hidden={"slips": _slips(given)})


def _two_distributions(rng: Any, words: int) -> tuple[list[float], list[float]]:
    """p and q, where p is above q for several words, and below for several: known mistakes give different answers."""
    for _ in range(_TRIES):
        p, q = _distribution(rng, words), _distribution(rng, words)
        above = sum(a > b for a, b in zip(p, q, strict=True))
        if 2 <= above <= words - 2 and len({*p}) == words:
            return p, q
    raise AssertionError("p is never above q for several words; draw other distributions")


def _distribution(rng: Any, words: int) -> list[float]:
    """Probabilities of four decimals, which sum to 1."""
    parts = rng.multinomial(10_000 - 100 * words, rng.dirichlet([0.8] * words)) + 100
    return [int(one) / 10_000 for one in parts]


def _pass(rng: Any, words: int, end: str) -> dict[str, Any]:
    """Drafted tokens with the distributions of both models, and uniforms that end the pass there."""
    drafted_count = int(rng.integers(3, 6))
    for _ in range(_TRIES):
        large = [_distribution(rng, words) for _ in range(drafted_count + 1)]
        small = [_distribution(rng, words) for _ in range(drafted_count)]
        one = {
            "drafted": [int(rng.choice(words, p=row)) for row in small],
            "large": large,
            "small": small,
            "uniforms": [round(float(u), 4) for u in rng.uniform(0.01, 0.99, drafted_count + 1)],
        }
        kept = len(_tokens(one)) - 1
        is_there = {"all": kept == drafted_count, "first": kept == 0, "middle": 0 < kept < drafted_count}[end]
        apart = sum(_tokens(one, slip) != _tokens(one) for slip in _WAYS)
        if is_there and apart >= (1 if end == "all" else 3) and _is_clear(one):
            return one
    raise AssertionError(f"no pass ends {end}; draw other distributions")


def _equal_pass(rng: Any, words: int) -> dict[str, Any]:
    """A pass whose first uniform is exactly its token's probability 1/2, and whose last is exactly 0.

    Token 0 is refused, since its uniform is not below; the residual gives it 0, so that a sum has to be above 0.
    """
    one = _pass(rng, words, "first")
    for _ in range(_TRIES):
        large, small = (_distribution(rng, words) for _ in range(2))
        half = [large[0] * 2, *small[1:]]
        rest = sum(round(10_000 * one) for one in half[:-1])
        half[-1] = (10_000 - rest) / 10_000
        if half[-1] > 0.01 and sum(a > b for a, b in zip(large, half, strict=True)) >= 2:
            one["large"][0], one["small"][0], one["drafted"][0] = large, half, 0
            one["uniforms"][0], one["uniforms"][-1] = 0.5, 0.0
            return one
    raise AssertionError("no distribution has a token at half of the other's; draw others")


def _equal_drafting(rng: Any) -> list[float]:
    """Lengths 0 and 1 are equally fast where a token costs what it is accepted with, exactly for these floats."""
    acceptance = float(rng.choice([0.25, 0.5, 0.75]))
    return [acceptance, acceptance, int(rng.integers(4, 13))]


def _is_clear(one: Any) -> bool:
    """Whether no uniform is near what it is compared with."""
    import numpy as np

    for i, token in enumerate(one["drafted"]):
        if abs(one["uniforms"][i] - _accepts(one["large"][i], one["small"][i])[token]) < _APART:
            return False
    rows = [_residual(a, b) for a, b in zip(one["large"], one["small"], strict=False)]
    sums = np.cumsum([*rows, *one["large"]], axis=1)
    return bool(np.abs(sums - one["uniforms"][-1]).min() > _APART)


_WAYS = ("no_bonus", "stops_without_one", "from_all_of_large", "goes_on")


def _tokens(one: Any, slip: str = "") -> list[int]:
    """The tokens of a pass, by the rule or by a known mistake."""
    kept: list[int] = []
    u = one["uniforms"][-1]
    for i, token in enumerate(one["drafted"]):
        p, q = one["large"][i], one["small"][i]
        if one["uniforms"][i] < _accepts(p, q)[token]:
            kept.append(token)
            continue
        if slip == "goes_on":
            kept.append(_at(_residual(p, q), u))
            continue
        last = {"stops_without_one": [], "from_all_of_large": [_at(p, u)]}.get(slip, [_at(_residual(p, q), u)])
        return kept + last
    return kept if slip == "no_bonus" else [*kept, _at(one["large"][-1], u)]


def _at(p: Any, u: float) -> int:
    import numpy as np

    return int((np.cumsum(p) > u).argmax())


def _accepts(p: Any, q: Any) -> list[float]:
    return [min(1.0, a / b) for a, b in zip(p, q, strict=True)]


def _residual(p: Any, q: Any) -> list[float]:
    above = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    return [one / sum(above) for one in above]


def _drafting(rng: Any, kind: str) -> list[float]:
    """(acceptance, cost, most): the best length is 0, between, or `most`, and known mistakes give others."""
    for _ in range(_TRIES):
        acceptance, cost = round(float(rng.uniform(0.2, 0.95)), 2), round(float(rng.uniform(0.02, 0.6)), 2)
        most = int(rng.integers(4, 13))
        gains = sorted((_speed_up(acceptance, cost, k), k) for k in range(most + 1))
        best = gains[-1][1]
        fits = {"none": best == 0, "some": 1 < best < most, "many": best == most}[kind]
        if fits and gains[-1][0] > (1 + _APART) * gains[-2][0]:
            return [acceptance, cost, most]
    raise AssertionError(f"no drafting of the kind {kind}; draw others")


def _speed_up(acceptance: float, cost: float, length: int, *, more: int = 1) -> float:
    return float((1 - acceptance ** (length + more)) / (1 - acceptance) / (1 + cost * length))


def _length(acceptance: float, cost: float, most: int, *, more: int = 1, first: int = 0) -> int:
    return max(range(first, int(most) + 1), key=lambda k: _speed_up(acceptance, cost, k, more=more))


def _slips(given: Any) -> dict[str, dict[str, str]]:
    """Digests of what each known mistake gives, by part of the evidence."""
    p, q = given["p"], given["q"]
    above = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    apart = [abs(a - b) for a, b in zip(p, q, strict=True)]
    accepts: dict[str, list[Any]] = {
        "if_likelier": [float(a >= b) for a, b in zip(p, q, strict=True)],
        "the_likeliest": [float(one == max(p)) for one in p],
        "not_capped": [a / b for a, b in zip(p, q, strict=True)],
        "by_the_large": list(p),
        "the_other_way": [min(1.0, b / a) for a, b in zip(p, q, strict=True)],
    }
    residual = {"not_divided": above, "all_of_p": p, "differences": [one / sum(apart) for one in apart]}
    lengths = {
        "no_cost": [_length(a, 0.0, most) for a, _, most in given["draftings"]],
        "one_fewer": [_length(*one, more=0) for one in given["draftings"]],
        "at_least_one": [_length(*one, first=1) for one in given["draftings"]],
    }
    tokens = {way: [token for one in given["passes"] for token in (*_tokens(one, way), "end")] for way in _WAYS}
    parts: dict[str, dict[str, list[Any]]] = {
        "accepts": accepts,
        "residual": residual,
        "tokens": tokens,
        "lengths": lengths,
    }
    return {part: {name: digest(one) for name, one in some.items()} for part, some in parts.items()}
