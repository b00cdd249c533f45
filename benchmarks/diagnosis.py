"""Diagnose loops with known causes, and print a confusion matrix and the errors of shares and predicted gains.

    python benchmarks/diagnosis.py [--mixtures 24] [--seed 0] [--no-gains] [--real]
    python benchmarks/diagnosis.py --speed [--against CHECKOUT]

`--real` adds loops of PyTorch with an injected cause, on this machine's CPU and, if it has one, on its GPU.
`--speed` measures how many CPU seconds `diagnose` takes on recorded traces. With `--against`, it alternates with
another checkout of this repository, and reports whether both give the same diagnoses.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edl_labs.trace import CAUSES, Ablation, Attribution, VirtualLoop, attribute, most_to_gain
from tests.data.loops import labelled_loops
from tests.data.loops.labelled import STEPS

_LEAST_SHARE = 0.05
_ROUNDS = 5
# (what is diagnosed, additions a step, steps); the profiler writes five events for an addition.
_SPEED_ROWS = (
    ("12,000 events: 12 steps of 200 additions", 200, 12),
    ("a step of 6,000 operators (30,000 events)", 6000, 1),
    ("a file of 43 MB: 12 steps of 2,775 additions", 2775, 12),
)
_DIAGNOSE = """
import json, sys, time
from edl_labs.trace import diagnose, read_trace
begun = time.process_time()
trace = read_trace(sys.argv[1])
read = time.process_time()
found = diagnose(trace)
print(json.dumps([read - begun, time.process_time() - read, found.to_json(), found.text()]))
"""


def main() -> None:
    """Run, print, and with --json write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mixtures", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-gains", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--against", type=Path, help="another checkout, which is timed alternately with this one")
    parser.add_argument("--json", type=Path)
    wanted = parser.parse_args()
    if wanted.speed:
        speed([Path(__file__).resolve().parents[1], *([wanted.against] if wanted.against else [])])
        return
    figures = modelled(wanted.mixtures, wanted.seed, gains=not wanted.no_gains)
    if wanted.real:
        figures["real"] = real()
    if wanted.json:
        wanted.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def modelled(mixtures: int, seed: int, *, gains: bool) -> dict[str, Any]:
    """The corpus on the VirtualGPU."""
    matrix: Counter[tuple[str, str]] = Counter()
    errors: list[float] = []
    ablations: list[Ablation] = []
    for item in labelled_loops(mixtures=mixtures, seed=seed):
        found = attribute(item.loop.record(STEPS), skip=1)
        matrix[item.dominant, found.dominant] += 1
        errors.append(max(abs(found.shares[cause] - item.shares[cause]) for cause in CAUSES))
        if gains:
            ablations += _ablated(item.loop, found.shares)
    total, right = sum(matrix.values()), sum(count for (true, said), count in matrix.items() if true == said)
    _print_matrix(matrix)
    print(f"loops: {total}; dominant cause diagnosed: {right} = {right / total:.1%}")
    within = sum(error <= 0.05 for error in errors)
    print(f"largest error of a share in each loop: median {median(errors):.4f}, worst {max(errors):.4f}; ", end="")
    print(f"within 5 points in {within} of {total} loops")
    figures: dict[str, Any] = {"loops": total, "right": right, "share_errors": errors}
    if ablations:
        figures["gains"] = _print_gains(ablations)
    return figures


def _ablated(loop: VirtualLoop, shares: Any) -> list[Ablation]:
    """Each cause with a share worth naming: predicted from the trace, and run without it."""
    causes = tuple(cause for cause in loop.ablations() if shares[cause] >= _LEAST_SHARE)
    predicted = {answer.cause: answer for answer in most_to_gain(loop.record(STEPS), skip=1)}
    times = loop.times_s(STEPS, (None, *causes))
    return [Ablation(cause, predicted[cause], times[None], times[cause]) for cause in causes]


def _print_gains(ablations: list[Ablation]) -> dict[str, Any]:
    # Where less than a hundredth of the step is gained, a relative error says nothing.
    told = [a for a in ablations if a.gain_s > 0.01 * a.before_s]
    errors = [a.gain_error for a in told if not math.isnan(a.gain_error)]
    within = sum(error <= 0.1 for error in errors)
    print(
        f"gains: relative error in {len(errors)} ablations: median {median(errors):.2g}, worst {max(errors):.2g}; ",
        end="",
    )
    print(f"within 10 %: {within}")
    for ablation in sorted(told, key=lambda a: -a.gain_error)[:3]:
        print(
            f"  worst: without {ablation.cause}, x{ablation.predicted.speedup:.2f} predicted, "
            f"x{ablation.speedup:.2f} measured"
        )
    return {"ablations": len(errors), "median_error": median(errors), "within_10_percent": within}


def _print_matrix(matrix: Counter[tuple[str, str]]) -> None:
    causes = [cause for cause in CAUSES if any(cause in pair for pair in matrix)]
    print("true \\ diagnosed".ljust(18) + "".join(cause.rjust(9) for cause in causes))
    for true in causes:
        print(true.ljust(18) + "".join(str(matrix[true, said] or ".").rjust(9) for said in causes))


def real() -> list[dict[str, Any]]:
    """Loops of PyTorch with an injected cause, on what this machine has."""
    import torch

    from tests.data.loops.real import injected_loops

    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    rows = []
    for item in [item for device in devices for item in injected_loops(device)]:
        trace = item.loop.record(20)
        shares = _quiet_shares(attribute(trace, skip=2))
        said = max(shares, key=lambda cause: shares[cause])
        row = {"loop": item.loop.name, "cause": item.cause, "said": said, "share": shares[item.cause]}
        if item.cause in item.loop.ablations():
            answers = {answer.cause: answer for answer in most_to_gain(trace, skip=2)}
            times = item.loop.times_s(20, (None, item.cause))
            row |= {"predicted": answers[item.cause].speedup, "tried": times[None] / times[item.cause]}
        rows.append(row)
        print(
            ", ".join(
                f"{key} {value:.2f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
            )
        )
    if devices == ["cpu"]:
        print("no GPU was found: synchronisation, copies and allocation were tried only on the VirtualGPU")
    return rows


def speed(checkouts: list[Path]) -> None:
    """CPU seconds of reading and of diagnosing, by checkout, in turns; and whether the diagnoses are equal."""
    with tempfile.TemporaryDirectory() as folder:
        for label, additions, steps in _SPEED_ROWS:
            path = Path(folder) / "trace.json"
            _record_additions(path, additions, steps)
            runs = [[_diagnosed(checkout, path) for checkout in checkouts] for _ in range(_ROUNDS)]
            medians = [median(run[place][1] for run in runs) for place in range(len(checkouts))]
            reads = median(run[0][0] for run in runs)
            print(f"{label}: read {reads:.2f} s, diagnosed {medians[0]:.2f} s", end="")
            if len(checkouts) > 1:
                ratios = sorted(run[1][1] / run[0][1] for run in runs)
                print(
                    f", against {medians[1]:.2f} s: {median(ratios):.1f}x [{ratios[0]:.1f}, {ratios[-1]:.1f}]", end=""
                )
                print("; equal" if all(_includes(run[0][2:], run[1][2:]) for run in runs) else "; NOT EQUAL", end="")
            print()


def _diagnosed(checkout: Path, path: Path) -> Any:
    command = [sys.executable, "-c", _DIAGNOSE, str(path)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _includes(here: Any, there: Any) -> bool:
    """Whether every number and text of `there` stands in `here` too, to the bit; keys may have come since."""
    if isinstance(there, dict):
        return all(key in here and _includes(here[key], value) for key, value in there.items())
    if isinstance(there, list):
        return len(here) == len(there) and all(map(_includes, here, there))
    return bool(here == there)


def _record_additions(path: Path, additions: int, steps: int) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    def step() -> None:
        value = torch.zeros(2)
        for _ in range(additions):
            value = value + 1.0

    step()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for number in range(steps):
            with record_function(f"ProfilerStep#{number}"):
                step()
    profiler.export_chrome_trace(str(path))


def _quiet_shares(found: Attribution) -> dict[str, float]:
    """The shares over the quieter half of the steps: what other programs took of the machine is no cause here."""
    quiet = sorted(found.steps, key=lambda step: step.wall_s)[: (len(found.steps) + 1) // 2]
    total_s = sum(step.wall_s for step in quiet)
    return {cause: sum(step.seconds[cause] for step in quiet) / total_s for cause in found.shares}


if __name__ == "__main__":
    main()
