"""`predict` against published steps: times, ratios, memory, limiters, and how often the printed interval holds.

Rows, families, pairs and causes are in `benchmarks/published/`; models are rebuilt in `published_models`. Sources with
`sha256(source) % 5 == 0` are test rows, the rest calibration; `--fit` fits the efficiencies on the latter alone and
prints them (they are then written into `edl_labs/predict/efficiencies.py` by hand). Leaving a GPU or a family out
repeats the fit without its rows by one Gauss-Newton step from the optimum.

Run with `python benchmarks/step_prediction.py [--cache DIR] [--cached] [--single] [--fit] [--rows FILE] [--show]`; exit
status 1 means that a target is missed. Recordings of models are kept in DIR, which makes a second run quick; with
`--cached` rows that are not there are left out.
"""

from __future__ import annotations

import csv
import hashlib
import math
import pickle
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from published_models import Job, build

from edl_labs.errors import EdlError
from edl_labs.predict.compiled_kernels import fused
from edl_labs.predict.efficiencies import Efficiencies
from edl_labs.predict.kernel_times import KernelTimer
from edl_labs.predict.machine_card import MachineCard
from edl_labs.predict.recorded_step import record_step
from edl_labs.predict.step_predictor import _Asked, predicted

HERE = Path(__file__).resolve().parent / "published"
Row = dict[str, Any]
# What is fitted, with the spread that its reason leaves it (of its logarithm): tables bind the best rates closely.
FITTED = {
    "tensor.old": 0.05,
    "tensor.ga100": 0.03,
    "tensor.ga10x": 0.05,
    "tensor.ada": 0.06,
    "tensor.hopper": 0.05,
    "cuda.hopper": 0.06,
    "cuda.ada": 0.1,
    "cuda.old": 0.03,
    "cuda.ga100": 0.03,
    "geforce_clock": 0.04,
    "power_exponent": 0.15,
    "dram.GDDR6": 0.05,
    "dram.GDDR6X": 0.04,
    "dram.HBM2": 0.04,
    "dram.HBM2e": 0.04,
    "stream.norm": 0.12,
    "stream.softmax": 0.12,
    "stream.reduce": 0.15,
    "stream.copy": 0.12,
    "stream.gather": 0.25,
    "stream.pool": 0.2,
    "stream.product": 0.06,
    "ordinary": 0.04,
    "ordinary_fp32": 0.04,
    "prologue": 0.3,
    "conv": 0.12,
    "dgrad": 0.12,
    "strided_dgrad": 0.3,
    "wgrad": 0.15,
    "conv_fp32": 0.2,
    "winograd": 0.15,
    "tf32_conv": 0.15,
    "nchw_conv": 0.2,
    "nchw_passes": 0.3,
    "nchw_back": 0.3,
    "depthwise": 0.3,
    "grouped": 0.4,
    "kernel_s": 0.2,
    "compiled_stream": 0.15,
    "host_s.old": 0.4,
}
# The same code gives twice the tokens elsewhere (Lambda's and NVIDIA's own rows): a fit would bend all else to it.
UNFITTED = ("transformer-xl",)
ROW_DOUBT = 0.08  # of a row's logarithm: between sd 1-4 % of machines and p90 7 % of software versions


def main(arguments: list[str]) -> int:
    after = lambda name: arguments[arguments.index(name) + 1] if name in arguments else None  # noqa: E731
    cache = Path(after("--cache") or "/dev/null")
    rows = published(Path(after("--rows") or HERE / "steps.csv"))
    single = [row for row in rows if row["n_gpus"] == "1" and row["step_ms"]]
    single = [row for row in single if recorded(row, cache)]
    if "--fit" in arguments:
        return fit(single)
    for row in single:
        row["prediction"] = predict_row(row, Efficiencies())
    many = [row for row in rows if row["n_gpus"] != "1" and row["step_ms"] and row["metric"] != "peak_GiB"]
    many = [row for row in many if "--single" not in arguments and recorded(row, cache)]
    for row in many:
        row["prediction"] = predict_row(row, Efficiencies())
    if "--show" in arguments:
        show([*single, *many])
    missed = report(rows, single, many, cache)
    return int(missed)


def published(path: Path) -> list[Row]:
    """Rows with their family, stack, and whether they are test rows."""
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[Row] = list(csv.DictReader(file))
    families = {row["id"]: row for row in table("families.csv")}
    for row in rows:
        row["test"] = int(hashlib.sha256(row["source"].encode()).hexdigest(), 16) % 5 == 0
        row["family"] = families.get(row["id"], {}).get("family", "unknown")
        row["stack"] = families.get(row["id"], {}).get("stack", "unknown")
    return rows


def table(name: str) -> list[dict[str, str]]:
    """A committed table of `published/`."""
    with (HERE / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def scored(row: Row) -> bool:
    """Whether a row counts: grade A or B, and a dtype that is predicted."""
    return row["grade"] in "AB" and not any(word in row["dtype"] for word in ("fp8", "int8"))


def recorded(row: Row, cache: Path) -> bool:
    """Put the row's job and recording into it; False where it cannot be rebuilt."""
    kept = cache / f"{row['id']}.pkl"
    if "--cached" in sys.argv and not kept.is_file():
        return False
    if kept.is_file():
        row["job"], row["recording"] = pickle.loads(kept.read_bytes())
        return True
    try:
        job = build(row)
        if job is None:
            return False
        recording = record_step(
            job.model, job.example, dtype=job.dtype, optimizer=job.optimizer, checkpoint=job.checkpoint
        )
    except EdlError as error:
        print(f"{row['id']} {row['model']}: {error}", file=sys.stderr)
        return False
    job.model, job.optimizer = None, None  # type: ignore[assignment]
    row["job"], row["recording"] = job, recording
    if cache.is_dir():
        kept.write_bytes(pickle.dumps((job, recording)))
    return True


def predict_row(row: Row, efficiencies: Efficiencies) -> Any:
    """The prediction of a recorded row."""
    job: Job = row["job"]
    cluster = {name: value for name, value in job.cluster.items() if name != "state_dtype"} or None
    asked = _Asked(
        None, job.example, machine_of(row), job.dtype, job.compiled, None, cluster, None, job.checkpoint,
        job.accumulate, job.graphed, efficiencies,
    )  # fmt: skip
    return predicted(asked, row["recording"])


def machine_of(row: Row) -> str:
    """The hardware table's name of a row's GPU."""
    return {"H100-SXM-96GB-HBM2e-500W": "H100-SXM-96GB-HBM2e"}.get(row["gpu"], row["gpu"])


def error(row: Row) -> float:
    """Predicted over published, less one."""
    return float(row["prediction"].step_s / (float(row["step_ms"]) / 1e3) - 1)


def quantile(values: Iterable[float], share: float) -> float:
    """The smallest value that `share` of them do not exceed."""
    listed = sorted(values)
    return listed[min(len(listed) - 1, math.ceil(share * len(listed)) - 1)] if listed else math.nan


def both(values: Iterable[float]) -> str:
    """Median and 90 % of absolute errors, in per cent."""
    listed = [abs(value) for value in values]
    if not listed:
        return "–"
    return f"{100 * statistics.median(listed):.1f} / {100 * quantile(listed, 0.9):.1f} ({len(listed)})"


def report(rows: list[Row], single: list[Row], many: list[Row], cache: Path) -> bool:
    """Print every table; whether a target is missed."""
    good = [row for row in single if scored(row)]
    train, test = [row for row in good if not row["test"]], [row for row in good if row["test"]]
    print("| figure | measured | target |\n|---|---|---|")
    lines: list[tuple[str, str, str, bool]] = []

    def line(name: str, text: str, target: str, met: bool) -> None:
        lines.append((name, text, target, met))
        print(f"| {name} | {text} | {target}{'' if met else ', missed'} |", flush=True)

    errors = [error(row) for row in good]
    line("one GPU, all rows: error median / p90, % (rows)", both(errors), "≤ 8 / ≤ 20", meets(errors, 0.08, 0.20))
    line("… calibration rows", both(map(error, train)), "–", True)
    line("… test rows", both(map(error, test)), "≤ 8 / ≤ 20", meets(map(error, test), 0.08, 0.20))
    slopes = slopes_of(good)
    gpu_left, family_left = left_out(good, "gpu", slopes), left_out(good, "family", slopes)
    by_gpu = defaultdict(list)
    for row in good:
        by_gpu[row["gpu"]].append(abs(gpu_left[row["id"]]))
    worst = max(statistics.median(found) for found in by_gpu.values())
    line("… a GPU left out", both(gpu_left.values()), "≤ 12 / ≤ 28", meets(gpu_left.values(), 0.12, 0.28))
    line("… worst GPU's median, left out", f"{100 * worst:.1f} %", "≤ 45 %", worst <= 0.45)
    line("… a family left out", both(family_left.values()), "–", True)
    known = {row["id"]: row for row in good}
    for kind, name, bounds in (
        ("gpu", "ratio of two GPUs", (0.08, 0.20)),
        ("software", "ratio of two software choices", (0.10, 0.25)),
    ):
        ratios = [
            (pair, *ratio(known[pair["first"]], known[pair["second"]]))
            for pair in table("pairs.csv")
            if pair["kind"] == kind and pair["first"] in known and pair["second"] in known
        ]
        errors = [ours / theirs - 1 for _, ours, theirs in ratios]
        line(name, both(errors), f"≤ {100 * bounds[0]:.0f} / ≤ {100 * bounds[1]:.0f}", meets(errors, *bounds))
        if kind == "software":
            large = [(ours, theirs) for _, ours, theirs in ratios if abs(theirs - 1) > 0.1]
            right = sum((ours > 1) == (theirs > 1) for ours, theirs in large) / max(1, len(large))
            line("… sign right, pairs above 10 %", f"{100 * right:.1f} % of {len(large)}", "≥ 95 %", right >= 0.95)
    llm = [row for row in many if scored(row)]
    errors = [error(row) for row in llm]
    line("many GPUs, LLM step", both(errors), "≤ 6 / ≤ 15", meets(errors, 0.06, 0.15))
    line("… calibration rows", both(error(row) for row in llm if not row["test"]), "–", True)
    memory = memory_errors(rows, cache)
    found = [value for _, value in memory]
    two = ", ".join(f"{name} {100 * value:+.1f} %" for name, value in sorted(memory, key=lambda one: -abs(one[1]))[:2])
    line(
        "peak memory, published",
        f"{both(found)}; worst {two}",
        "median ≤ 6",
        bool(found) and statistics.median(map(abs, found)) <= 0.06,
    )
    refused = [row["id"] for row in [*single, *many] if row["prediction"].fits == "no"]
    line("ran, and called 'does not fit'", ", ".join(refused) or "none", "none", not refused)
    every = {row["id"]: row for row in [*single, *many]}
    causes = [(one, every[one["id"]]["prediction"].limiter) for one in table("causes.csv") if one["id"] in every]
    right = sum(one["limiter"] == said for one, said in causes) / max(1, len(causes))
    wrong = ", ".join(f"{one['id']} {said} for {one['limiter']}" for one, said in causes if one["limiter"] != said)
    line(
        "limiter right",
        f"{100 * right:.1f} % of {len(causes)}" + (f" ({wrong})" if wrong else ""),
        "≥ 90 %",
        right >= 0.9,
    )
    held, half = interval_holds(good, gpu_left)
    line("80 % interval holds, GPU left out", f"{100 * held:.1f} %", "≥ 80 %", held >= 0.8)
    line("… median half-width there", f"{100 * half:.1f} %", "≤ 15 %", half <= 0.15)
    for key in ("family", "gpu", "stack"):
        print(f"\n| {key} | median / p90, % (rows) | bias, % | {key} left out |\n|---|---|---|---|")
        groups = defaultdict(list)
        for row in good:
            groups[row[key]].append(row)
        out = family_left if key == "family" else gpu_left
        for name, members in sorted(groups.items()):
            bias = 100 * statistics.median(map(error, members))
            other = both(out[row["id"]] for row in members) if key != "stack" else "–"
            print(f"| {name} | {both(map(error, members))} | {bias:+.1f} | {other} |")
    return any(not met for *_, met in lines)


def meets(errors: Iterable[float], median: float, most: float) -> bool:
    """Whether absolute errors keep both bounds."""
    listed = [abs(value) for value in errors]
    return bool(listed) and statistics.median(listed) <= median and quantile(listed, 0.9) <= most


def ratio(first: Row, second: Row) -> tuple[float, float]:
    """(predicted, published) time of a sample of the second over one of the first."""
    times = [(row["prediction"].step_s, float(row["step_ms"]) / 1e3) for row in (first, second)]
    batches = [float(row["batch_per_gpu"]) for row in (first, second)]
    return tuple(times[1][i] / batches[1] / (times[0][i] / batches[0]) for i in (0, 1))  # type: ignore[return-value]


def memory_errors(rows: list[Row], cache: Path) -> list[tuple[str, float]]:
    """(row, error) of the published peaks that can be rebuilt."""
    found = []
    for row in rows:
        if not row["metric"].startswith("peak_") or not scored(row) or not recorded(row, cache):
            continue
        peak = predict_row(row, Efficiencies()).peak_bytes
        unit = 2**30 if row["metric"] == "peak_GiB" else 1e9
        found.append((f"{row['id']} {row['model']}", peak / (float(row["value"]) * unit) - 1))
    return found


def interval_holds(good: list[Row], left: dict[str, float]) -> tuple[float, float]:
    """(share of left-out rows inside, median half-width) of the printed interval, moved to the left-out prediction."""
    inside, halves = [], []
    for row in good:
        prediction = row["prediction"]
        factor = prediction.high_s / prediction.step_s
        inside.append(abs(math.log1p(left[row["id"]])) <= math.log(factor))
        halves.append(factor - 1)
    return sum(inside) / len(inside), statistics.median(halves)


# The fit: logarithms of the efficiencies, robust residuals of the rows, and priors.


def value_of(efficiencies: Efficiencies, name: str) -> float:
    """One of the fitted numbers."""
    field, _, key = name.partition(".")
    found = getattr(efficiencies, field)
    return float(found[key] if key else found)


def kinds_of(row: Row) -> list[tuple[Any, int]]:
    """(kernel, how often) of a row: what a fit prices again and again."""
    if "kinds" not in row:
        kernels = row["recording"].kernels
        kernels = fused(kernels) if row["job"].compiled else kernels
        counts: Counter[Any] = Counter()
        one_of = {}
        for kernel in kernels:
            key = (kernel.kind, kernel.dtype, kernel.product, kernel.attention, kernel.moved_bytes, kernel.phase)
            counts[key] += 1
            one_of[key] = kernel
        row["kinds"] = [(one_of[key], count) for key, count in counts.items()]
    return row["kinds"]  # type: ignore[no-any-return]


def logarithms(rows: list[Row], efficiencies: Efficiencies) -> Any:
    """log(predicted / published) of each row, the stream's waiting for the host taken as the longer of the two."""
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
        device = sum(timer.time(kernel).seconds * count for kernel, count in kinds_of(row))
        host = sum(
            count * op_s * (efficiencies.host_backward if kernel.phase == "backward" and not job.compiled else 1)
            for kernel, count in kinds_of(row)
        )
        found.append(math.log((device**8 + host**8) ** (1 / 8) / (float(row["step_ms"]) / 1e3)))
    return np.array(found)


def weights(rows: list[Row]) -> Any:
    """Stacks with many rows count less for each of them."""
    counts = Counter(row["stack"] for row in rows)
    return np.array([1 / math.sqrt(max(1.0, counts[row["stack"]] / 8)) for row in rows])


def fit(single: list[Row]) -> int:
    """Print the fitted efficiencies of the calibration rows."""
    from scipy.optimize import least_squares

    rows = [row for row in single if scored(row) and not row["test"] and row["family"] not in UNFITTED]
    base, share = Efficiencies(), weights(rows)
    names, spreads = list(FITTED), np.array(list(FITTED.values()))
    start = np.log([value_of(base, name) for name in names])

    def residuals(x: Any) -> Any:
        changed = base.changed(**dict(zip(names, map(float, np.exp(x)), strict=True)))
        return np.concatenate([logarithms(rows, changed) / ROW_DOUBT * share, (x - start) / spreads])

    found = least_squares(residuals, start, loss="soft_l1", f_scale=1.5, max_nfev=6, diff_step=1e-2)
    for name, x in zip(names, found.x, strict=True):
        print(f"{name}: {value_of(base, name):.4g} -> {math.exp(x):.4g}")
    return 0


def left_out(good: list[Row], key: str, slopes: tuple[Any, Any]) -> dict[str, float]:
    """The error of each row with the rows of its GPU (or family) taken out of the fit, by one Gauss-Newton step."""
    centre, jacobian = slopes
    spreads = np.array(list(FITTED.values()))
    exact = np.log1p([error(row) for row in good])
    share, found = weights(good), {}
    fitted = np.array([not row["test"] and row["family"] not in UNFITTED for row in good])
    whole = newton(jacobian, centre, share, fitted, spreads)
    for group in sorted({row[key] for row in good}):
        out = np.array([row[key] == group for row in good])
        step = newton(jacobian, centre, share, fitted & ~out, spreads) - whole
        for number in np.flatnonzero(out):
            found[good[number]["id"]] = math.expm1(exact[number] + float(jacobian[number] @ step))
    return found


def slopes_of(good: list[Row]) -> tuple[Any, Any]:
    """Logarithms of predicted over published, and how they change with each fitted number's logarithm."""
    base, columns = Efficiencies(), []
    centre = logarithms(good, base)
    for name in FITTED:
        changed = base.changed(**{name: value_of(base, name) * 1.02})
        columns.append((logarithms(good, changed) - centre) / math.log(1.02))
    return centre, np.stack(columns, 1)


def newton(jacobian: Any, centre: Any, share: Any, used: Any, spreads: Any) -> Any:
    """The step that a fit on the rows `used` would take from here, with the robust loss's weights."""
    residual = centre[used] / ROW_DOUBT * share[used]
    robust = 1 / np.sqrt(1 + (residual / 1.5) ** 2)
    a = jacobian[used] / ROW_DOUBT * (share[used] * np.sqrt(robust))[:, None]
    b = -residual * np.sqrt(robust)
    return np.linalg.solve(a.T @ a + np.diag(1 / spreads**2), a.T @ b)


def show(rows: list[Row]) -> None:
    """Every row, the worst last."""
    for row in sorted(rows, key=lambda one: abs(error(one))):
        prediction, mark = row["prediction"], "test" if row["test"] else ""
        print(
            f"{row['id']} {row['model']:22s} {row['gpu']:15s} {row['n_gpus']:>3s} × "
            f"{row['batch_per_gpu']:5s} {row['dtype']:11s} "
            f"{row['layout']:5s} {row['mode']:8.8s} {float(row['step_ms']):9.1f} {prediction.step_s * 1e3:9.1f} ms "
            f"{100 * error(row):+6.1f} % {prediction.limiter:8s} {mark} {'' if scored(row) else 'not scored'}"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
