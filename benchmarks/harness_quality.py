"""How good is the benchmark harness? It is compared with the standard tools on payloads whose true time is known.

    python benchmarks/harness_quality.py --quick            takes at most 4 minutes
    python benchmarks/harness_quality.py --full --json FILE takes as long as it needs

It prints a table with each figure, the range of the rivals, our value, the target, and whether the target is met. It
says which rows this machine cannot measure, and writes JSON with a description of the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import harness_rows as rows

from edl_labs.device import describe

LONG, SHORT = ["400 clock readings", "matmul of 256", "relu of 1M"], ["torch.add of 64"]


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    rivals: str
    ours: str
    target: str
    met: bool


def take(*, full: bool, say: Any) -> dict[str, Any]:
    """Every row's raw data; the rows that need the quietest machine come first."""
    plan = {
        "bias": lambda: rows.bias(LONG + SHORT, rounds=60 if full else 7, budget_s=0.2 if full else 0.1),
        "call_cost": lambda: rows.call_cost(rounds=15 if full else 3, budget_s=0.1),
        "identical_quiet": lambda: _identical(full, busy=0),
        "identical_noisy": lambda: _identical(full, busy=2),
        "false_alarms": lambda: rows.false_alarms(runs=200 if full else 60, budget_s=0.4 if full else 0.2),
        "rank_tests": lambda: rows.rank_tests("relu of 1M", rounds=100 if full else 15, budget_s=0.4),
        "slowdown": lambda: rows.slowdown(runs=100 if full else 20),
        "power_under_load": lambda: rows.power_under_load(runs=50 if full else 10),
        "known_ratios": lambda: rows.known_ratios(runs=200 if full else 60, budget_s=0.2),
        "one_percent": lambda: rows.time_to_one_percent(runs=25 if full else 8),
        "replicates": rows.replicates,
        "scripted": lambda: rows.scripted_coverage(runs=1000 if full else 150),
        "mistakes": rows.mistakes,
        "pyperf": rows.pyperf_row,
        "cuda": lambda: rows.cuda_bias(rounds=25 if full else 5, budget_s=0.2),
    }
    found: dict[str, Any] = {}
    for name, row in plan.items():
        start = time.perf_counter()
        found[name] = row()
        say(f"  {name}: {time.perf_counter() - start:.1f} s")
    return found


def _identical(full: bool, *, busy: int) -> dict[str, Any]:
    every = ["timeit, least of 7", "torch blocked_autorange", "torch adaptive_autorange", "inductor benchmarker"]
    rivals = every if full else every[1:2]
    names = ["matmul of 256", "relu of 1M"] if full else ["relu of 1M"]
    return {name: rows.identical(name, rounds=50 if full else 25, busy=busy, rivals=rivals) for name in names}


def figures(found: dict[str, Any]) -> list[Figure]:
    """The table, from the raw data alone."""
    payloads = found["bias"]["payloads"]
    return [
        _bias("bias against known truth, ≥ 10 µs", payloads, LONG, limit=0.005),
        _bias("bias at 1 µs", payloads, SHORT, limit=0.02),
        *_identical_figures(found),
        *_alarm_figures(found),
        _figure("1 % slowdowns found in 0.4 s", "–", found["slowdown"]["found"], at_least=0.95),
        _power_under_load(found["power_under_load"]),
        *_coverage_figures(found),
        _one_percent(found["one_percent"]),
        _call_cost(found["call_cost"]),
        _wall(found),
        _replicates(found["replicates"]),
        *_mistake_figures(found["mistakes"]),
        *_cuda_figures(found["cuda"]),
    ]


def skipped(found: dict[str, Any]) -> list[str]:
    """A line for each row that could not be measured here, with the reason; such a row is not missed."""
    return [f"skipped: {name}: {row['skipped']}" for name, row in found.items() if "skipped" in row]


def _bias(name: str, payloads: dict[str, Any], which: list[str], *, limit: float) -> Figure:
    ours = max((payloads[p]["ours"]["bias"] for p in which), key=abs)
    rivals = [payloads[p][h]["bias"] for p in which for h in payloads[p] if h != "ours"]
    text = ", ".join(f"{payloads[p]['ours']['bias']:+.2%} ± {payloads[p]['ours']['doubt']:.2%}" for p in which)
    return Figure(name, _range(rivals), text, f"within ±{limit:.1%}", abs(ours) <= limit)


def _identical_figures(found: dict[str, Any]) -> list[Figure]:
    table = []
    for state in ("quiet", "noisy"):
        for name, row in found[f"identical_{state}"].items():
            ours = row["p95"]["ours"]
            rivals = [p for harness, p in row["p95"].items() if harness != "ours"]
            table.append(
                Figure(
                    f"A/A ratio error, p95, {state}, {name}",
                    _range(rivals, signed=False),
                    f"{ours:.2%}",
                    "≤ 0.4 % and 5× better",
                    ours <= 0.004 and min(rivals) >= 5 * ours,
                )
            )
    return table


def _alarm_figures(found: dict[str, Any]) -> list[Figure]:
    tests, ours = found["rank_tests"], found["false_alarms"]
    rivals = ", ".join(f"{k} {v:.0%}" for k, v in tests.items() if k not in ("n", "skipped")) or "–"
    n = f"n={ours['n']}"
    return [
        Figure(
            f"false alarms, only the interval, {n}",
            rivals,
            f"{ours['interval']:.1%}",
            "≤ 8.5 %",
            ours["interval"] <= 0.085,
        ),
        Figure(f"false alarms with the band, {n}", "–", f"{ours['band']:.1%}", "0", ours["band"] == 0),
    ]


def _power_under_load(row: dict[str, Any]) -> Figure:
    text = ", ".join(f"{slowdown} {share:.0%}" for slowdown, share in row["found"].items()) + f"; {row['wrong']} wrong"
    met = row["found"]["+10 %"] >= 0.95 and not row["wrong"]
    name = f"slowdowns found with two busy processes, n={row['n']} each"
    return Figure(name, "–", text, "+10 % ≥ 95 %; 0 wrong", met)


def _coverage_figures(found: dict[str, Any]) -> list[Figure]:
    scripted = {k: v for k, v in found["scripted"].items() if k != "n"}
    text = ", ".join(f"{shape} {share:.1%}" for shape, share in scripted.items())
    n, real = found["scripted"]["n"], found["known_ratios"]
    held = all(0.935 <= share <= 0.965 for share in scripted.values())
    return [
        Figure(f"coverage, scripted noise, n={n} each", "none", text, "93.5–96.5 % at n=1000", held),
        _figure(f"coverage, real machine, n={real['n']}", "none", real["coverage"], at_least=0.91),
    ]


def _figure(name: str, rivals: str, share: float, *, at_least: float) -> Figure:
    return Figure(name, rivals, f"{share:.1%}", f"≥ {at_least:.0%}", share >= at_least)


def _one_percent(row: dict[str, Any]) -> Figure:
    worst = max(item["median_s"] for item in row.values())
    return Figure("time to ±1 % on a ratio, worst payload", "none", f"{worst * 1e3:.0f} ms", "≤ 100 ms", worst <= 0.1)


def _call_cost(row: dict[str, float]) -> Figure:
    rivals = [ns for harness, ns in row.items() if harness != "ours"]
    text = f"{min(rivals):+.1f} … {max(rivals):+.1f} ns"
    return Figure("cost per call outside the payload", text, f"{row['ours']:+.1f} ns", "≤ 5 ns", abs(row["ours"]) <= 5)


def _wall(found: dict[str, Any]) -> Figure:
    walls = found["bias"]["wall"]
    compared = [row["wall_max"] for state in ("quiet", "noisy") for row in found[f"identical_{state}"].values()]
    ours = max(walls["ours"]["max"], *compared)
    rivals = max(w["max"] for harness, w in walls.items() if harness != "ours")
    return Figure("wall time / budget, worst case", f"{rivals:.2f}×", f"{ours:.2f}×", "≤ 1.15×", ours <= 1.15)


def _replicates(row: dict[str, int]) -> Figure:
    rival = str(row["torch blocked_autorange"])
    return Figure("replicates when the clock costs 10 µs", rival, str(row["ours"]), "≥ 20", row["ours"] >= 20)


def _mistake_figures(row: dict[str, Any]) -> list[Figure]:
    alarms, clean = len(row["alarms"]), row["clean"]
    return [
        _figure(f"mistakes found, of {row['n']}", "–", row["found"], at_least=0.95),
        Figure(f"false alarms on {clean} clean functions", "–", str(alarms), "0", not alarms),
    ]


def _cuda_figures(row: dict[str, Any]) -> list[Figure]:
    if "skipped" in row:
        return []
    ours = max((biases["ours"] for biases in row.values()), key=abs)
    rivals = [bias for biases in row.values() for harness, bias in biases.items() if harness != "ours"]
    each = ", ".join(f"{biases['ours']:+.2%}" for biases in row.values())
    return [Figure("bias on CUDA, ≥ 20 µs", _range(rivals), each, "within ±1.0%", abs(ours) <= 0.01)]


def _range(values: list[float], *, signed: bool = True) -> str:
    sign = "+" if signed else ""
    return f"{min(values):{sign}.2%} … {max(values):{sign}.2%}"


def text_table(table: list[Figure]) -> str:
    """The table as text, in columns."""
    lines = [("figure", "rivals", "ours", "target", "")]
    lines += [(f.name, f.rivals, f.ours, f.target, "met" if f.met else "MISSED") for f in table]
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="run as many rounds as the figures need")
    parser.add_argument("--quick", action="store_true", help="take at most 4 minutes (the default)")
    parser.add_argument("--json", type=Path, help="where to write the raw data")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    found = take(full=options.full, say=lambda line: print(line, flush=True))
    table = figures(found)
    print("\n".join([text_table(table), *skipped(found)]))
    print(f"\n{time.perf_counter() - start:.0f} s, load {os.getloadavg()[0]:.1f}")
    if options.json:
        data = {"schema": 1, "stamp": describe("cpu").to_dict(), "found": found, "table": [asdict(f) for f in table]}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0 if all(figure.met for figure in table) else 1


if __name__ == "__main__":
    sys.exit(main())
