"""Cases of the kernel exercises: sizes that no tile divides, and seeds of values that stay with the judge."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab11_tiles.attention_kernels import Attention, Causal
from edl_labs.exercises.lab11_tiles.backward_kernels import AttentionBackward
from edl_labs.exercises.lab11_tiles.judge.kernel_slip_rules import attention_slips, backward_slips, product_slips
from edl_labs.exercises.lab11_tiles.product_kernels import GeluProduct, TiledProduct

_HIGH = 120.0  # a level of scores whose exp is beyond fp32
_LOW = -30_000.0  # near the least of fp16
_FAR = -160.0  # a level of scores whose exp is 0 in fp32


@case_source("scale_shift_relu")
def vectors(rng: Any) -> list[Case]:
    """Short and long, with a length that no block divides."""
    lengths = [1000, _odd(rng, 2500, 4000), _odd(rng, 20_000, 40_000), int(rng.integers(1, 60))]
    return [_vector(rng, n) for n in lengths]


def _vector(rng: Any, n: int) -> Case:
    a, b = (round(float(rng.uniform(0.3, 2.0)), 2) for _ in range(2))
    return Case(given={"n": n, "a": -a, "b": b}, hidden=_seed(rng))


@case_source("row_softmax")
def short_rows(rng: Any) -> list[Case]:
    """Rows of a power of two, ragged ones, ones far below 0, ones above exp's range, and ones with padding."""
    return [
        _rows(rng, 12, 128, pad=0, level=0, spread=1),
        _rows(rng, 12, _odd(rng, 1100, 1500), pad=0, level=0, spread=1),
        _rows(rng, 9, _odd(rng, 60, 120), pad=0, level=-30, spread=2),
        _rows(rng, 5, _odd(rng, 60, 120), pad=0, level=_LOW, spread=8),
        _rows(rng, 7, _odd(rng, 60, 120), pad=0, level=100, spread=3),
        _rows(rng, 11, _odd(rng, 60, 120), pad=int(rng.integers(1, 40)), level=0, spread=2),
    ]


@case_source("long_rows")
def long_rows(rng: Any) -> list[Case]:
    """Rows of several blocks: their maximum grows, falls, and is far below 0."""
    return [
        _rows(rng, 5, 512, pad=0, level=0, spread=1, BLOCK=128),
        _rows(rng, 6, _odd(rng, 700, 1000), pad=0, level=0, spread=3, BLOCK=128),
        _rows(rng, 4, _odd(rng, 300, 500), pad=0, level=-30, spread=2, BLOCK=64),
        _rows(rng, 4, _odd(rng, 300, 500), pad=0, level=100, spread=3, BLOCK=64),
        _rows(rng, 3, _odd(rng, 300, 500), pad=int(rng.integers(1, 40)), level=0, spread=2, BLOCK=128),
    ]


def _rows(rng: Any, rows: int, columns: int, *, pad: int, level: float, spread: float, **more: int) -> Case:
    given = {"rows": rows, "columns": columns, "row_stride": columns + pad, **more}
    return Case(given=given, hidden={"level": float(level), "spread": float(spread), **_seed(rng)})


@case_source("tiled_product")
def products(rng: Any) -> list[Case]:
    """Whole tiles, ragged ones, both types, and tiles that are wider than high."""
    return _products(rng, TiledProduct())


@case_source("gelu_product")
def gelu_products(rng: Any) -> list[Case]:
    """As for `tiled_product`."""
    return _products(rng, GeluProduct())


def _products(rng: Any, exercise: Any) -> list[Case]:
    sizes = [
        (64, 64, 64, 32, 32, "float32"),
        (_odd(rng, 60, 90), _odd(rng, 60, 90), 64, 32, 32, "float32"),
        (_odd(rng, 60, 90), _odd(rng, 60, 90), _odd(rng, 70, 120), 32, 64, "float32"),
        (_odd(rng, 60, 90), _odd(rng, 60, 90), _odd(rng, 900, 1200), 64, 32, "float16"),
    ]
    cases = []
    for m, n, k, bm, bn, dtype in sizes:
        given = {"M": m, "N": n, "K": k, "BM": bm, "BN": bn, "dtype": dtype}
        cases.append(_with_slips(Case(given=given, hidden=_seed(rng)), exercise, product_slips))
    return cases


@case_source("attention")
def attentions(rng: Any) -> list[Case]:
    """One tile, several, a ragged one, padding after the keys, scores far below 0, and no key at all."""
    return [
        _attention(rng, queries=32, keys=16, pad=0, d=16, BM=16, BN=16),
        _attention(rng, queries=32, keys=96, pad=0, d=16, BM=16, BN=32),
        _attention(rng, queries=_odd(rng, 40, 60), keys=_odd(rng, 70, 120), pad=0, d=32, BM=32, BN=16),
        _attention(rng, queries=_odd(rng, 20, 60), keys=_odd(rng, 200, 260), pad=23, d=16, BM=16, BN=32),
        _attention(rng, queries=_odd(rng, 20, 40), keys=_odd(rng, 40, 60), pad=5, d=16, BM=16, BN=32, level=_FAR),
        _attention(rng, queries=_odd(rng, 20, 40), keys=0, pad=40, d=16, BM=16, BN=16),
    ]


def _attention(rng: Any, *, keys: int, pad: int, level: float = -1.0, **sizes: int) -> Case:
    given = {**sizes, "keys": keys, "stored_keys": keys + pad}
    case = Case(given=given, hidden={"level": level, **_seed(rng)})
    return _with_slips(case, Attention(), attention_slips)


@case_source("causal")
def causals(rng: Any) -> list[Case]:
    """Square tiles, ragged ends, and both kinds of oblong tiles."""
    sizes = [(64, 16, 16), (_odd(rng, 70, 100), 32, 16), (_odd(rng, 70, 100), 16, 32), (_odd(rng, 40, 60), 16, 16)]
    cases = []
    for number, (n, bm, bn) in enumerate(sizes):
        given = {"queries": n, "stored_keys": n, "d": 16, "BM": bm, "BN": bn}
        level = _FAR if number == len(sizes) - 1 else -1.0
        cases.append(_with_slips(Case(given=given, hidden={"level": level, **_seed(rng)}), Causal(), attention_slips))
    return cases


@case_source("attention_backward")
def gradients(rng: Any) -> list[Case]:
    """One tile, several, ragged ones of both shapes, and scores whose exponential is beyond fp32."""
    sizes = [
        (32, 32, 16, 32, 32, 1.0),
        (64, 96, 16, 32, 32, 1.0),
        (_odd(rng, 40, 60), _odd(rng, 70, 120), 32, 32, 16, 1.0),
        (_odd(rng, 20, 60), _odd(rng, 90, 140), 16, 16, 32, 1.0),
        (_odd(rng, 20, 40), _odd(rng, 40, 60), 16, 16, 32, _HIGH),
    ]
    cases = []
    for queries, keys, d, bm, bn, level in sizes:
        given = {"queries": queries, "keys": keys, "d": d, "BM": bm, "BN": bn}
        case = Case(given=given, hidden={"level": level, **_seed(rng)})
        cases.append(_with_slips(case, AttentionBackward(), backward_slips))
    return cases


@case_source("column_sums")
def tall_matrices(rng: Any) -> list[Case]:
    """One tile, several tiles of rows, and ragged ends of both kinds."""
    sizes = [
        (16, 32, 16, 32),
        (128, 64, 32, 32),
        (_odd(rng, 200, 300), _odd(rng, 40, 90), 64, 32),
        (_odd(rng, 2000, 3000), _odd(rng, 20, 60), 128, 16),
    ]
    names = ("rows", "columns", "BM", "BN")
    return [Case(given=dict(zip(names, one, strict=True)), hidden=_seed(rng)) for one in sizes]


@case_source("tile_order")
def tile_grids(rng: Any) -> list[Case]:
    """Groups that divide the rows, groups that do not, one row, and a group with more rows than there are."""
    group = int(rng.integers(2, 5))
    sizes = [
        (2 * group, 2 * group + int(rng.integers(1, 5)), group),
        (3 * group + 1, int(rng.integers(3, 9)), group),
        (int(rng.integers(5, 9)), int(rng.integers(9, 14)), 1),
        (1, int(rng.integers(3, 9)), group),
        (group, int(rng.integers(3, 9)), group + 3),
    ]
    return [Case(given={"rows": rows, "columns": columns, "group": group}) for rows, columns, group in sizes]


def _with_slips(case: Case, exercise: Any, rules: Any) -> Case:
    """The case with some values of what each known mistake gives."""
    return Case(given=case.given, hidden={**case.hidden, "slips": rules(exercise, case)})


def _odd(rng: Any, least: int, most: int) -> int:
    """An odd number: no block divides it."""
    return int(rng.integers(least // 2, most // 2)) * 2 + 1


def _seed(rng: Any) -> dict[str, int]:
    return {"seed": int(rng.integers(2**62))}
