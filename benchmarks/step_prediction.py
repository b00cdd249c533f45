"""Compares `predict` with published steps: times, ratios, memory, limiters, and how often the printed interval holds.

Rows, families, pairs and causes are in `benchmarks/published/`; the models are rebuilt in `published_models`. Rows of
sources with `sha256(source) % 5 == 0` are test rows, and the others are calibration rows. `--fit` fits the efficiencies
to the calibration rows, prints them and uses them in the report. `--doubts` prints the numbers from which intervals are
computed. Copy both into `edl_labs/predict`.

Run with `python benchmarks/step_prediction.py [--cache DIR] [--cached] [--single] [--fit] [--doubts] [--calibration]
[--rows FILE] [--show]`. Exit status 1 means that a target is missed. Recordings of models are kept in DIR, which makes
a second run quick. `--cached` leaves out rows without a recording, and `--calibration` leaves out the test rows.
"""

from __future__ import annotations

import csv
import hashlib
import math
import pickle
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from efficiency_fit import doubts, fit, interval_holds, left_out, slopes_of
from published_models import Job, build

from edl_labs.errors import EdlError
from edl_labs.predict.efficiencies import Efficiencies
from edl_labs.predict.recorded_step import record_step
from edl_labs.predict.step_predictor import _Asked, predicted

HERE = Path(__file__).resolve().parent / "published"
Row = dict[str, Any]


def main(arguments: list[str]) -> int:
    after = lambda name: arguments[arguments.index(name) + 1] if name in arguments else None  # noqa: E731
    cache = Path(after("--cache") or "/dev/null")
    rows = published(Path(after("--rows") or HERE / "steps.csv"))
    rows = [row for row in rows if not (row["test"] and "--calibration" in arguments)]
    single = [row for row in rows if row["n_gpus"] == "1" and row["step_ms"]]
    single = [row for row in single if recorded(row, cache)]
    many = [row for row in rows if row["n_gpus"] != "1" and row["step_ms"] and row["metric"] != "peak_GiB"]
    many = [row for row in many if "--single" not in arguments and recorded(row, cache)]
    base = Efficiencies()
    for row in [*single, *many]:
        row["prediction"] = predict_row(row, base)
    calibration = [row for row in [*single, *many] if scored(row) and not row["test"]]
    if "--fit" in arguments:
        base = fit(calibration, machine_of)
        for row in [*single, *many]:
            row["prediction"] = predict_row(row, base)
            row.pop("beside", None)
    if "--doubts" in arguments:
        left = left_out(calibration, "gpu", slopes_of(calibration, machine_of, base), error, base)
        print(*doubts(calibration, left), flush=True)
    if "--show" in arguments:
        show([*single, *many])
    missed = report(rows, single, many, cache, base)
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


def report(rows: list[Row], single: list[Row], many: list[Row], cache: Path, base: Efficiencies) -> bool:
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
    line("… test rows", both(map(error, test)), "≤ 8 / ≤ 20", not test or meets(map(error, test), 0.08, 0.20))
    slopes = slopes_of(good, machine_of, base)
    gpu_left, family_left = (left_out(good, key, slopes, error, base) for key in ("gpu", "family"))
    by_gpu = defaultdict(list)
    for row in good:
        by_gpu[row["gpu"]].append(abs(gpu_left[row["id"]]))
    drawn, upper = p90_intervals(list(by_gpu.values()))
    line("… 95 % interval of that p90, rows resampled / GPUs resampled", drawn, "upper end ≤ 32 %", upper <= 0.32)
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
    for name, memory in (("published", memory_errors(rows, cache, base)), ("CPU steps", cpu_memory_errors(cache))):
        found = [value for _, value in memory]
        ordered = sorted(memory, key=lambda one: -abs(one[1]))
        two = ", ".join(f"{which} {100 * value:+.1f} %" for which, value in ordered[:2])
        met = bool(found) and statistics.median(map(abs, found)) <= 0.06
        line(f"peak memory, {name}", f"{both(found)}; worst {two}", "median ≤ 6", met)
        if "--show" in sys.argv:
            print(*(f"  {which} {100 * value:+.1f} %" for which, value in ordered), sep="\n")
    refused = [row["id"] for row in [*single, *many] if row["prediction"].fits == "no"]
    line("rows that ran, but were called 'does not fit'", ", ".join(refused) or "none", "none", not refused)
    every = {row["id"]: row for row in [*single, *many]}
    causes = [(one, every[one["id"]]["prediction"].limiter) for one in table("causes.csv") if one["id"] in every]
    right = sum(one["limiter"] == said for one, said in causes) / max(1, len(causes))
    wrong = ", ".join(
        f"{one['id']} {said} instead of {one['limiter']}" for one, said in causes if one["limiter"] != said
    )
    line(
        "limiter right",
        f"{100 * right:.1f} % of {len(causes)}" + (f" ({wrong})" if wrong else ""),
        "≥ 90 %",
        right >= 0.9,
    )
    scored_all = [*good, *llm]
    all_left = left_out(scored_all, "gpu", slopes_of(scored_all, machine_of, base), error, base)
    holds = interval_holds(scored_all, all_left)
    held, half, count = holds["all"]
    line("80 % interval holds, GPU left out", f"{100 * held:.1f} % of {count}", "≥ 80 %", held >= 0.8)
    line("… median half-width there", f"{100 * half:.1f} %", "≤ 15 %", half <= 0.15)
    for name, (held, half, count) in holds.items():
        print(f"| … {name} | {100 * held:.1f} % of {count}, half-width {100 * half:.1f} % | – |")
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


def p90_intervals(groups: list[list[float]], *, draws: int = 4000) -> tuple[str, float]:
    """(both bootstrap intervals of the p90 in words, the larger upper end): rows, and whole GPUs, are drawn again."""
    rng = np.random.default_rng(0)
    every = np.concatenate(groups)
    by_row = [quantile(rng.choice(every, len(every)), 0.9) for _ in range(draws)]
    picks = rng.integers(0, len(groups), (draws, len(groups)))
    by_gpu = [quantile(np.concatenate([groups[at] for at in pick]), 0.9) for pick in picks]
    ends = [np.quantile(found, (0.025, 0.975)) for found in (by_row, by_gpu)]
    words = " / ".join(f"{100 * low:.1f} to {100 * high:.1f} %" for low, high in ends)
    return words, float(max(high for _, high in ends))


def meets(errors: Iterable[float], median: float, most: float) -> bool:
    """Whether absolute errors keep both bounds."""
    listed = [abs(value) for value in errors]
    return bool(listed) and statistics.median(listed) <= median and quantile(listed, 0.9) <= most


def ratio(first: Row, second: Row) -> tuple[float, float]:
    """(predicted, published) time of a sample of the second over one of the first."""
    times = [(row["prediction"].step_s, float(row["step_ms"]) / 1e3) for row in (first, second)]
    batches = [float(row["batch_per_gpu"]) for row in (first, second)]
    return tuple(times[1][i] / batches[1] / (times[0][i] / batches[0]) for i in (0, 1))  # type: ignore[return-value]


def memory_errors(rows: list[Row], cache: Path, base: Efficiencies) -> list[tuple[str, float]]:
    """(row, error) of the published peaks that can be rebuilt."""
    found = []
    for row in rows:
        if not row["metric"].startswith("peak_") or not scored(row) or not recorded(row, cache):
            continue
        peak = predict_row(row, base).peak_bytes
        unit = 2**30 if row["metric"] == "peak_GiB" else 1e9
        found.append((f"{row['id']} {row['model']}", peak / (float(row["value"]) * unit) - 1))
    return found


def cpu_memory_errors(cache: Path) -> list[tuple[str, float]]:
    """(model, error) of the ten CPU steps of `memory_prediction.py`, parameters and all; measured once for a cache."""
    import torch
    import torchvision
    from memory_prediction import BATCH, MODELS, SIDE, measured_peak

    kept = cache / "cpu_steps.pkl"
    if kept.is_file():
        return list(pickle.loads(kept.read_bytes()))
    found = []
    for name in MODELS:
        model, images = getattr(torchvision.models, name)(), torch.randn(BATCH, 3, SIDE, SIDE)
        held = record_step(model, images, optimizer="momentum").held
        before = sum(held.get(part, 0) for part in ("parameters", "inputs", "optimizer"))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        found.append((name, sum(held.values()) / (before + measured_peak(model, images, optimizer)) - 1))
    if cache.is_dir():
        kept.write_bytes(pickle.dumps(found))
    return found


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
