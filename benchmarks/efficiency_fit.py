"""Fits the efficiencies of `predict`, and its uncertainties, to published steps; `step_prediction.py` calls it.

Each number starts from the value that its source gives, or from a guess. Its spread says how far it may move. Residuals
of rows are weighted robustly. A GPU or family is left out by one Gauss-Newton step from the optimum.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edl_labs.predict.compiled_kernels import fused
from edl_labs.predict.efficiencies import Efficiencies
from edl_labs.predict.kernel_times import KernelTimer
from edl_labs.predict.machine_card import MachineCard
from edl_labs.predict.many_gpus import ParallelLayout, sharded
from edl_labs.predict.step_predictor import doubt
from edl_labs.predict.step_times import WORKS

Row = dict[str, Any]
ROW_DOUBT = 0.08  # of a row's logarithm: between sd 1-4 % of machines and p90 7 % of software versions
# What is fitted: (value that the sources in `efficiencies.py` give, or None for today's; spread of its logarithm).
FITTED: dict[str, tuple[float | None, float]] = {
    "tensor.old": (0.90, 0.05), "tensor.ga100": (0.94, 0.04), "tensor.ga10x": (None, 0.05), "tensor.ada": (1.0, 0.06),
    "tensor.hopper": (0.80, 0.08), "cuda.hopper": (0.76, 0.06), "cuda.ada": (None, 0.1), "cuda.old": (0.97, 0.03),
    "cuda.ga100": (0.98, 0.03), "geforce_clock": (1.1, 0.05), "power_exponent": (None, 0.15),
    "dram.GDDR6": (0.75, 0.05), "dram.GDDR6X": (None, 0.04), "dram.HBM2": (0.90, 0.04), "dram.HBM2e": (0.86, 0.04),
    "dram.HBM3": (0.91, 0.06), "dram.HBM3e": (0.91, 0.12), "stream.norm": (0.75, 0.12), "stream.softmax": (0.75, 0.12),
    "stream.reduce": (None, 0.15), "stream.copy": (None, 0.12), "stream.gather": (None, 0.25),
    "stream.pool": (None, 0.2), "stream.product": (None, 0.06), "ordinary": (0.87, 0.06),
    "ordinary_fp32": (None, 0.04), "prologue": (None, 0.3), "conv": (1.0, 0.12), "dgrad": (None, 0.12),
    "strided_dgrad": (None, 0.3), "wgrad": (None, 0.15), "conv_fp32": (None, 0.2), "winograd": (None, 0.15),
    "tf32_conv": (None, 0.15), "nchw_conv": (None, 0.2), "nchw_passes": (1.0, 0.3), "nchw_back": (1.0, 0.3),
    "nchw_straight": (None, 0.4), "depthwise": (None, 0.3), "grouped": (None, 0.4), "kernel_s": (None, 0.2),
    "compiled_stream": (None, 0.15), "attention.ga100": (0.58, 0.15), "attention.hopper": (0.45, 0.15),
    "attention.ga10x": (0.6, 0.15), "attention.ada": (0.65, 0.15), "host_s.old": (None, 0.4),
}  # fmt: skip


def value_of(efficiencies: Efficiencies, name: str) -> float:
    """One of the fitted numbers."""
    field, _, key = name.partition(".")
    found = getattr(efficiencies, field)
    return float(found[key] if key else found)


def _kinds(row: Row) -> list[tuple[Any, float]]:
    """(kernel, how often) of a row: what a fit prices again and again."""
    if "kinds" not in row:
        job = row["job"]
        kernels = fused(row["recording"].kernels) if job.compiled else row["recording"].kernels
        if job.cluster:
            spread = {name: value for name, value in job.cluster.items() if name != "state_dtype"}
            kernels = sharded(kernels, ParallelLayout.of(spread))
        counts: Counter[Any] = Counter()
        one_of = {}
        for kernel in kernels:
            key = (kernel.kind, kernel.dtype, kernel.product, kernel.attention, kernel.moved_bytes, kernel.phase)
            counts[key] += 1 if kernel.phase == "optimizer" else job.accumulate
            one_of[key] = kernel
        row["kinds"] = [(one_of[key], count) for key, count in counts.items()]
    return row["kinds"]  # type: ignore[no-any-return]


def logarithms(rows: Sequence[Row], efficiencies: Efficiencies, machine_of: Callable[[Row], str]) -> Any:
    """log(predicted / published) of each row, the stream's waiting for the host taken as the longer of the two.

    What this leaves out, messages between GPUs above all, is taken from the row's own prediction, once.
    """
    timers: dict[Any, KernelTimer] = {}
    found = []
    for row in rows:
        job = row["job"]
        key = row["gpu"], job.compiled
        if key not in timers:
            timers[key] = KernelTimer(MachineCard.of(machine_of(row)), efficiencies, compiled=job.compiled)
        timer = timers[key]
        op_s = efficiencies.host_s[timer.card.family] * (efficiencies.host_compiled if job.compiled else 1)
        op_s = efficiencies.graph_launch_s if job.graphed else op_s
        device = sum(timer.time(kernel).seconds * count for kernel, count in _kinds(row))
        host = sum(
            count * op_s * (efficiencies.host_backward if kernel.phase == "backward" and not job.compiled else 1)
            for kernel, count in _kinds(row)
        )
        logarithm = math.log((device**8 + host**8) ** (1 / 8) / (float(row["step_ms"]) / 1e3))
        if int(row["n_gpus"]) > 1:
            exact = math.log(row["prediction"].step_s / (float(row["step_ms"]) / 1e3))
            row.setdefault("beside", exact - logarithm)
            logarithm += row["beside"]
        found.append(logarithm)
    return np.array(found)


def weights(rows: Sequence[Row]) -> Any:
    """Stacks with many rows count less for each of them."""
    counts = Counter(row["stack"] for row in rows)
    return np.array([1 / math.sqrt(max(1.0, counts[row["stack"]] / 8)) for row in rows])


def _priors(base: Efficiencies) -> tuple[list[str], Any, Any, Any]:
    """(names, logarithms to begin with, those of the sources, spreads)."""
    names = list(FITTED)
    start = np.log([value_of(base, name) for name in names])
    centre = np.log([FITTED[name][0] or value_of(Efficiencies(), name) for name in names])
    return names, start, centre, np.array([spread for _, spread in FITTED.values()])


def fit(rows: Sequence[Row], machine_of: Callable[[Row], str]) -> Efficiencies:
    """Print and give the fitted efficiencies of calibration rows, to four digits."""
    from scipy.optimize import least_squares

    base, share = Efficiencies(), weights(rows)
    names, start, centre, spreads = _priors(base)

    def residuals(x: Any) -> Any:
        changed = base.changed(**dict(zip(names, map(float, np.exp(x)), strict=True)))
        return np.concatenate([logarithms(rows, changed, machine_of) / ROW_DOUBT * share, (x - centre) / spreads])

    found = least_squares(residuals, start, loss="soft_l1", f_scale=1.5, max_nfev=3, diff_step=1e-2)
    fitted = {name: float(f"{math.exp(x):.4g}") for name, x in zip(names, found.x, strict=True)}
    for name, value in fitted.items():
        print(f"{name}: {value_of(base, name):.4g} -> {value:.4g}", flush=True)
    return base.changed(**fitted)


def left_out(
    rows: Sequence[Row], key: str, slopes: tuple[Any, Any], error: Callable[[Row], float], base: Efficiencies
) -> dict[str, float]:
    """The error of each row with the rows of its GPU (or family) taken out of the fit, by one Gauss-Newton step."""
    centre, jacobian = slopes
    exact = np.log1p([error(row) for row in rows])
    share, found = weights(rows), {}
    fitted = np.array([not row["test"] for row in rows])
    whole = _newton(jacobian, centre, share, fitted, base)
    for group in sorted({row[key] for row in rows}):
        out = np.array([row[key] == group for row in rows])
        step = _newton(jacobian, centre, share, fitted & ~out, base) - whole
        for number in np.flatnonzero(out):
            found[rows[number]["id"]] = math.expm1(exact[number] + float(jacobian[number] @ step))
    return found


def slopes_of(rows: Sequence[Row], machine_of: Callable[[Row], str], base: Efficiencies) -> tuple[Any, Any]:
    """Logarithms of predicted over published, and how they change with each fitted number's logarithm."""
    columns = []
    centre = logarithms(rows, base, machine_of)
    for name in FITTED:
        changed = base.changed(**{name: value_of(base, name) * 1.02})
        columns.append((logarithms(rows, changed, machine_of) - centre) / math.log(1.02))
    return centre, np.stack(columns, 1)


def _newton(jacobian: Any, centre: Any, share: Any, used: Any, base: Efficiencies) -> Any:
    """The step that a fit on the rows `used` would take from here, with the robust loss's weights."""
    _, start, sources, spreads = _priors(base)
    residual = centre[used] / ROW_DOUBT * share[used]
    robust = 1 / np.sqrt(1 + (residual / 1.5) ** 2)
    a = jacobian[used] / ROW_DOUBT * (share[used] * np.sqrt(robust))[:, None]
    b = -residual * np.sqrt(robust)
    return np.linalg.solve(a.T @ a + np.diag(1 / spreads**2), a.T @ b + (sources - start) / spreads**2)


# Doubts of kinds of work: what makes left-out residuals likely, then scaled so that four of five lie inside.
_BEGIN = {"product": 0.08, "convolution": 0.12, "attention": 0.15, "bytes": 0.12, "launch": 0.3, "communication": 0.25}
_STUDENT = 4.0  # degrees of freedom: a few rows are wrong for reasons of their own, and must not widen all others
_BOUNDS = (0.02, 0.8)  # a doubt is neither nothing nor everything
_Z80 = 1.2816


def doubts(rows: Sequence[Row], left: dict[str, float]) -> tuple[dict[str, float], float]:
    """(doubt of each kind of work, of a step as a whole) from errors of rows that were left out of the fit."""
    from scipy.optimize import minimize

    errors = np.array([math.log1p(left[row["id"]]) for row in rows])
    share = np.array([_shares(row) for row in rows])
    start = np.log([*(_BEGIN[name] for name in WORKS), 0.06])

    def unlikely(x: Any) -> float:
        spread = np.sqrt(share**2 @ np.exp(2 * x[:-1]) + math.exp(2 * x[-1]))
        student = (_STUDENT + 1) / 2 * np.log1p((errors / spread) ** 2 / _STUDENT) + np.log(spread)
        return float(student.sum() + 2 * ((x - start) ** 2).sum())

    limits = [tuple(map(math.log, _BOUNDS))] * len(start)
    x = np.exp(minimize(unlikely, start, bounds=limits).x)
    spread = np.sqrt(share**2 @ x[:-1] ** 2 + x[-1] ** 2)
    # Split-conformal: the place of (n + 1) 0.8 in the order of scaled residuals, not a normal law's.
    order = np.sort(np.abs(errors) / spread)
    scale = float(order[min(len(order) - 1, math.ceil(0.8 * (len(order) + 1)) - 1)]) / _Z80
    return {name: float(value * scale) for name, value in zip(WORKS, x[:-1], strict=True)}, float(x[-1] * scale)


def _shares(row: Row) -> list[float]:
    prediction = row["prediction"]
    return [prediction.works.get(name, 0.0) / prediction.step_s for name in WORKS]


def interval_holds(rows: Sequence[Row], left: dict[str, float]) -> dict[str, tuple[float, float, int]]:
    """(share inside, median half-width, rows) with doubts from the calibration rows of other GPUs, by kind of row."""
    found: dict[str, list[tuple[bool, float]]] = {}
    for gpu in sorted({row["gpu"] for row in rows}):
        each, common = doubts([row for row in rows if row["gpu"] != gpu and not row["test"]], left)
        for row in rows:
            if row["gpu"] != gpu:
                continue
            prediction = row["prediction"]
            half = _Z80 * doubt(prediction.step_s, prediction.works, each, common)
            kept = abs(math.log1p(left[row["id"]])) <= half, math.expm1(half)
            most = WORKS[int(np.argmax(_shares(row)))]
            for name in ("all", "test" if row["test"] else "calibration", most):
                found.setdefault(name, []).append(kept)
    return {
        name: (sum(inside for inside, _ in kept) / len(kept), float(np.median([half for _, half in kept])), len(kept))
        for name, kept in found.items()
    }
