"""Functions that use infinities, order, caches and changes in place on purpose. The detector reports no mistake."""

from __future__ import annotations

import base64
import bisect
import csv
import datetime
import decimal
import fractions
import functools
import heapq
import io
import itertools
import locale
import math
import os
import re
import statistics
import string
import textwrap
from typing import Any

import numpy as np
import torch
from snippet_register import clean

RNG = np.random.default_rng(1)


def _plain(fn: Any, **options: Any) -> Any:
    return clean(lambda: {"fn": fn, **options})


# Infinities and NaN by design
_plain(
    lambda p: np.where(np.eye(64, dtype=bool), np.inf, abs(p[:, None] - p[None, :])), inputs=(RNG.standard_normal(64),)
)
_plain(lambda x: np.where(x > 1, np.nan, x), inputs=(RNG.standard_normal(500),))
_plain(lambda x: np.nanmean(np.where(x > 1, np.nan, x)), inputs=(RNG.standard_normal(500),))
_plain(lambda x: torch.where(x > 0, x, torch.inf).amin(-1), inputs=lambda: (torch.randn(16, 64),))
_plain(lambda x: x.masked_fill(x < -1, math_nan()), inputs=lambda: (torch.randn(16, 64),))
_plain(lambda x: float("inf") if x is None else float(x.sum()), inputs=lambda: (RNG.standard_normal(64),))

# Order by design
_plain(lambda x: np.unique(x), inputs=(np.array([2, 1] * 100),))
_plain(lambda x: np.unique(x), inputs=lambda: (RNG.integers(0, 4, 1000),))
_plain(lambda x: torch.unique(x, return_counts=True), inputs=(torch.tensor([3, 1, 2] * 50),))
_plain(lambda x: np.partition(x, 10)[:10], inputs=lambda: (RNG.standard_normal(1000),))
_plain(lambda x: np.argsort(x, kind="stable"), inputs=(RNG.standard_normal(1000),))
_plain(lambda x: heapq.merge is not None and sorted(x, reverse=True), inputs=([5, 1, 4, 2, 3] * 20,))

# Text, numbers, bytes
_plain(lambda: sum(decimal.Decimal(i) / 7 for i in range(1, 50)))
_plain(lambda: sum(fractions.Fraction(1, i) for i in range(1, 40)))
_plain(lambda: statistics.fmean([i * 0.5 for i in range(200)]))
_plain(lambda: base64.b64decode(base64.b64encode(b"payload" * 300)))
_plain(lambda: textwrap.fill("one two three four five " * 30, 60))
_plain(lambda: re.compile(r"(\w+)@(\w+)\.org").findall("ada@edl.org bob@edl.org " * 20))
_plain(lambda: string.Template("$who owes $what").substitute(who="ada", what="2"))
_plain(lambda: datetime.datetime.fromisoformat("2026-11-22T10:00:00").strftime("%A %d %B"))
_plain(lambda: locale.format_string("%.2f", 1234567.891, grouping=True))
_plain(lambda: list(csv.reader(io.StringIO("a,b,c\n1,2,3\n" * 50))))
_plain(lambda: functools.reduce(lambda a, b: a * b % 1_000_003, range(1, 300)))
_plain(lambda: list(map(sum, zip(range(100), itertools.repeat(3), strict=False))))
_plain(lambda: int.from_bytes(os.urandom(64), "big").bit_count())
_plain(lambda z: np.abs(np.exp(1j * z)), inputs=lambda: (RNG.standard_normal(500),))
_plain(lambda z: torch.view_as_real(torch.fft.fft(z)), inputs=lambda: (torch.randn(256),))
_plain(lambda a, b: torch.einsum("ij,kj->ik", a, b), inputs=lambda: (torch.randn(16, 8), torch.randn(12, 8)))
_plain(lambda x: (x - x.mean(0)) / x.std(0), inputs=lambda: (RNG.standard_normal((100, 8)),))
_plain(lambda x: np.linalg.svd(x, compute_uv=False), inputs=lambda: (RNG.standard_normal((24, 24)),))
_plain(lambda x: np.quantile(x, [0.1, 0.5, 0.9]), inputs=lambda: (RNG.standard_normal(999),))
_plain(lambda x: x.argmax(), inputs=(RNG.standard_normal(999),))
_plain(lambda x: np.cumsum(x), inputs=(RNG.standard_normal(999),))


def math_nan() -> float:
    return float("nan")


@clean
def insertion_points_in_a_sorted_array() -> dict[str, Any]:
    table = np.sort(RNG.standard_normal(1000))
    return {"fn": lambda keys: np.searchsorted(table, keys), "inputs": lambda: (RNG.standard_normal(100),)}


@clean
def unique_labels_beside_a_sorted_table() -> dict[str, Any]:
    edges = np.linspace(0, 1, 101)

    def fn(x: Any) -> Any:
        return np.unique(np.digitize(x, edges))

    return {"fn": fn, "inputs": lambda: (RNG.random(500),)}


@clean
def top_of_a_list_beside_a_range() -> dict[str, Any]:
    names = [f"item{number:03d}" for number in range(200)]

    def fn(scores: Any) -> list[str]:
        return [name for _, name in sorted(zip(scores, names, strict=True))[:3]]

    return {"fn": fn, "inputs": lambda: ([float(x) for x in RNG.random(200)],)}


@clean
def bounded_heap() -> dict[str, Any]:
    numbers = [float(x) for x in RNG.random(500)]

    def fn() -> list[float]:
        heap: list[float] = []
        for number in numbers:
            heapq.heappush(heap, number)
            if len(heap) > 10:
                heapq.heappop(heap)
        return heap

    return {"fn": fn}


@clean
def bisect_into_a_kept_list() -> dict[str, Any]:
    table = sorted(float(x) for x in RNG.random(500))

    def fn() -> None:
        bisect.insort(table, 0.5)
        table.pop(bisect.bisect_left(table, 0.5))

    return {"fn": fn}


@clean
def table_behind_a_warm_cache() -> dict[str, Any]:
    @functools.cache
    def factor(n: int) -> float:
        return sum(1 / k for k in range(1, n + 1))

    for n in range(100):
        factor(n)
    return {"fn": lambda: sum(factor(n) for n in range(100))}


@clean
def work_with_a_remembered_mask() -> dict[str, Any]:
    @functools.lru_cache(maxsize=8)
    def mask(length: int) -> torch.Tensor:
        return torch.ones(length, length).tril().bool()

    def fn(scores: torch.Tensor) -> torch.Tensor:
        return scores.masked_fill(~mask(scores.shape[-1]), -torch.inf).softmax(-1)

    return {"fn": fn, "inputs": lambda: (torch.randn(4, 32, 32),)}


@clean
def dictionary_filled_before() -> dict[str, Any]:
    squares = {n: [n * n] * 40 for n in range(100)}
    return {"fn": lambda: squares[7]}


@clean
def normalised_in_place() -> dict[str, Any]:
    x = RNG.standard_normal(1000)

    def fn() -> Any:
        np.subtract(x, x.mean(), out=x)
        x[:] /= x.std()
        return x

    return {"fn": fn}


@clean
def weights_normalised_in_place() -> dict[str, Any]:
    w = torch.randn(64, 64)

    def fn() -> torch.Tensor:
        return w.div_(w.norm(dim=1, keepdim=True))

    return {"fn": fn}


@clean
def shuffled_in_place() -> dict[str, Any]:
    x = np.arange(1000)
    return {"fn": lambda: RNG.shuffle(x)}


@clean
def large_floats_filled_anew() -> dict[str, Any]:
    x, state = np.full(64, 3e7, dtype=np.float32), {}

    def fn() -> Any:
        out = state.setdefault("out", np.empty(64, dtype=np.float32))
        return np.copyto(out, x) or out

    return {"fn": fn}


@clean
def sparse_product() -> dict[str, Any]:
    a = (torch.randn(64, 64) * (torch.rand(64, 64) < 0.1)).to_sparse_csr()
    return {"fn": lambda x: a @ x, "inputs": lambda: (torch.randn(64, 8),)}


@clean
def sparse_coo_sum() -> dict[str, Any]:
    a = torch.eye(64).to_sparse()
    return {"fn": lambda: torch.sparse.sum(a + a, 0)}


@clean
def rows_picked_at_random() -> dict[str, Any]:
    table = RNG.standard_normal((1000, 16))
    return {"fn": lambda: table[RNG.integers(0, 1000, 64)]}


@clean
def frozen_features() -> dict[str, Any]:
    body, head = torch.nn.Linear(32, 32).eval(), torch.nn.Linear(32, 4)

    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = body(x)
        loss = head(features).square().mean()
        head.zero_grad()
        loss.backward()
        return loss.detach()

    return {"fn": fn, "inputs": lambda: (torch.randn(8, 32),)}


@clean
def inference_as_a_decorator() -> dict[str, Any]:
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Dropout(0.5)).eval()
    return {"fn": torch.inference_mode()(lambda x: model(x).sum(-1)), "inputs": lambda: (torch.randn(8, 32),)}


@clean
def labels_by_a_table_of_edges() -> dict[str, Any]:
    edges = np.linspace(0, 1, 101)
    return {"fn": lambda: np.unique(np.digitize(RNG.random(500), edges))}


@clean
def ranks_by_a_sorted_table() -> dict[str, Any]:
    table = [number / 50 for number in range(50)]
    return {"fn": lambda: [bisect.bisect(table, x) for x in sorted(RNG.random(20).tolist())]}


@clean
def best_so_far() -> dict[str, Any]:
    best = {"loss": math.inf}

    def fn() -> float:
        loss = float(RNG.random())
        best["loss"] = min(best["loss"], loss)
        return loss

    return {"fn": fn}


@clean
def shortest_paths() -> dict[str, Any]:
    edges = {i: [((i * 7 + 1) % 50, 1.5), ((i * 3 + 2) % 50, 2.5)] for i in range(50)}

    def fn() -> dict[int, float]:
        far, waiting = {**dict.fromkeys(edges, math.inf), 0: 0.0}, [(0.0, 0)]
        while waiting:
            reached, u = heapq.heappop(waiting)
            for v, length in edges[u]:
                if reached + length < far[v]:
                    far[v] = reached + length
                    heapq.heappush(waiting, (far[v], v))
        return far

    return {"fn": fn}
