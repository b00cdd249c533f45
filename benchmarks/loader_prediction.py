"""The throughput of a loader, predicted from its stages and then measured, in 28 configurations and after tuning.

There are four families of loaders. Two decode images. One waits, as for a network, with drawn latencies. One mixes
short waits with many small pieces of work, as loaders of audio and text do.

The prediction uses the stages in separate processes, the processor time of passing a batch on, and how much processes
slow each other down. It never uses the DataLoader that it predicts. Every round predicts again, then measures. The
error of a configuration is the median over rounds of measured / predicted - 1.

Run with `python benchmarks/loader_prediction.py [--json] [--rounds N] [--waiting]`. With `--waiting`, only the last two
families run. Exit status 1 means that a target is missed.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from edl_labs.bench import measure
from edl_labs.device import describe
from edl_labs.pipeline import (
    ImageDataset,
    LoaderModel,
    busy_step,
    cache_state,
    collate,
    feed,
    image_set,
    measure_contention,
    measure_handoff,
    run_loader,
    sleeping_step,
    usable_cores,
    whose_fault,
    write,
)

LARGEST_ERROR, LEAST_SHARE = 0.10, 0.90
BATCH = 16
# (decoder, format, size of images, what is handed over)
FAMILIES = (
    ("simplejpeg", "raw", (375, 500), "uint8"),
    ("pillow", "npy", (300, 400), "uint8"),
)
WORKERS = (0, 1, 2)
STEPS_S = (0.0, 30e-3)
# (workers, step, whether it takes the CPU): more workers than cores, and a step that wants one of them.
CONFIGURATIONS = (
    *((workers, step_s, False) for step_s in STEPS_S for workers in WORKERS),
    (4, 0.0, False),
    (4, 20e-3, True),
)
# Workers that wait: more of them than cores are of use.
WAITING_FAMILIES = ("network-like", "audio and text")
WAITING_CONFIGURATIONS = (
    *((workers, 0.0, False) for workers in (1, 2, 4, 6)),
    (6, 20e-3, False),
    (6, 10e-3, True),
)
# Sleeping steps of these lengths, in periods of the loader, must reach the target; the others are told.
GATED = ("sleeping, 1.5x", "sleeping, 0.7x")


class NetworkLike:
    """Samples from far away: a latency is drawn (3 ms, log-normal), then some checks on what came."""

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, sample: int) -> Any:
        time.sleep(random.Random(sample).lognormvariate(-5.94, 0.5))
        return np.full(2048, zlib.crc32(bytes(20_000)) % 7, dtype=np.float32)


class AudioAndText:
    """Samples of many small pieces: a short wait for a range of a file, unpacking, windows and their spectra, words."""

    def __init__(self) -> None:
        self.packed = zlib.compress(b"the quick brown fox jumps over the lazy dog " * 200)

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, sample: int) -> Any:
        drawn, pieces = random.Random(sample), []
        for _ in range(4):
            time.sleep(drawn.uniform(0.2e-3, 0.6e-3))
            text = zlib.decompress(self.packed).decode()
            words = len(re.findall(r"[a-z]+", text))
            sound = np.frombuffer(text.encode()[:8192], dtype=np.uint8).astype(np.float32).reshape(16, 512)
            pieces.append(np.abs(np.fft.rfft(sound * np.hanning(512))).mean(0) * words)
        return np.stack(pieces).astype(np.float32)


def stacked(samples: list[Any]) -> Any:
    """A batch of arrays as one tensor."""
    return torch.from_numpy(np.stack(samples))


def family(folder: Path, decoder: str, format: str, size: tuple[int, int]) -> ImageDataset:
    """The data set of one family of configurations, warm."""
    data = image_set(128, size=size, folder=folder)
    store = write(data, folder / f"{format}-{size[0]}", format=format)
    list(store.scan())
    return ImageDataset(store, decoder=decoder)


def model_of(*, step_s: float, on_cpu: bool, costs: dict[str, Any]) -> LoaderModel:
    """The prediction's model from what was measured of the stages."""
    contention = costs["contention"]
    worker_s = 1 / contention.rates[1]
    return LoaderModel(
        BATCH,
        worker_s,
        costs["handoff_s"],
        costs["main_s"],
        step_s,
        step_on_cpu=on_cpu,
        contention=contention,
    )


def alone_s(step_s: float) -> float:
    """What a step that asks to sleep for `step_s` takes on this machine: longer, by the time to wake up."""
    if not step_s:
        return 0.0
    step = sleeping_step(step_s)
    return measure(lambda: step(None), budget_s=10 * step_s, detect=False).median_s


def costs_of(dataset: Any, *, merge: Callable[[list[Any]], Any]) -> dict[str, Any]:
    """What the stages take: a batch in one process, in several at once, and handing it over."""
    turn = count()

    def batch() -> Any:
        start = next(turn) * BATCH
        return merge([dataset[(start + n) % len(dataset)] for n in range(BATCH)])

    handoff_s, main_s = measure_handoff(batch(), batches=80)
    contention = measure_contention(batch, seconds=0.6, rounds=2)
    return {"handoff_s": handoff_s, "main_s": main_s, "contention": contention}


def one_round(datasets: dict[tuple, Any], rows: dict[tuple, list[tuple[float, float, str]]]) -> None:
    """Predict, then measure, every configuration once."""
    for key, dataset in datasets.items():
        waits = key[0] in WAITING_FAMILIES
        merge = stacked if waits else collate
        costs = costs_of(dataset, merge=merge)
        configurations = WAITING_CONFIGURATIONS if waits else CONFIGURATIONS
        slept_s = {step_s: alone_s(step_s) for step_s in {step_s for _, step_s, _ in configurations}}
        for workers, step_s, on_cpu in configurations:
            # A busy step takes the processor time that it is asked for; a sleeping one wakes up late.
            model = model_of(step_s=step_s if on_cpu else slept_s[step_s], on_cpu=on_cpu, costs=costs)
            step = (busy_step if on_cpu else sleeping_step)(step_s) if step_s else None
            run = run_loader(dataset, batch_size=BATCH, workers=workers, step=step, collate=merge, seconds=1.2)
            place = (*key[:3], workers, step_s, on_cpu)
            rows[place].append((model.sample_per_s(workers), run.sample_per_s, model.limit(workers)))


def tuned(dataset: ImageDataset) -> dict[str, dict[str, Any]]:
    """A tuned pipeline with a step that takes no CPU, and with one that does: the share of min(both mocks) reached."""
    workers = usable_cores()

    def loader() -> Any:
        batches = [[(n * BATCH + k) % len(dataset) for k in range(BATCH)] for n in range(200)]
        return feed(dataset, batches=batches, workers=workers, collate=collate, prefetch=4, ahead=True, nice=10)

    period_s = whose_fault(loader, lambda batch: None, batches=60).loader_s
    found = {}
    for name, factor, make in (
        ("sleeping, 1.5x", 1.5, sleeping_step),
        ("sleeping, 1.0x", 1.0, sleeping_step),
        ("sleeping, 0.7x", 0.7, sleeping_step),
        ("on the CPU, 1.0x", 1.0, busy_step),
    ):
        faults = [whose_fault(loader, make(factor * period_s), batches=50) for _ in range(3)]
        share = median(1 / fault.interference for fault in faults)
        shares = [1 / fault.interference for fault in faults]
        found[name] = {"share": share, "shares": shares, "verdict": faults[-1].verdict, **faults[-1].to_json()}
    return found


def main() -> int:
    """Measure, print the tables, and say whether the targets are met."""
    warnings.filterwarnings("ignore", category=UserWarning, module="torch")
    torch.set_num_threads(1)
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = {} if "--waiting" in sys.argv else {key: family(folder, *key[:3]) for key in FAMILIES}
        states = [str(cache_state(dataset.store.paths)) for dataset in images.values()]
        waiting = dict(zip(WAITING_FAMILIES, (NetworkLike(), AudioAndText()), strict=True))
        datasets = {**images, **{(name, "-", (0, 0)): dataset for name, dataset in waiting.items()}}
        rows: dict[tuple, list[tuple[float, float, str]]] = defaultdict(list)
        for _ in range(rounds):
            one_round(datasets, rows)
        shares = tuned(next(iter(images.values()))) if images else {}
    table = []
    for (decoder, layout, size, workers, step_s, on_cpu), seen in rows.items():
        error = median(measured / predicted for predicted, measured, _ in seen) - 1
        table.append(
            {
                "decoder": decoder,
                "format": layout,
                "size": f"{size[0]}x{size[1]}",
                "workers": workers,
                "step_s": step_s,
                "step_on_cpu": on_cpu,
                "predicted_per_s": median(p for p, _, _ in seen),
                "measured_per_s": median(m for _, m, _ in seen),
                "limit": seen[-1][2],
                "error": error,
                "errors": [measured / predicted - 1 for predicted, measured, _ in seen],
            }
        )
    bad = [row for row in table if abs(row["error"]) > LARGEST_ERROR]
    slow = [name for name, row in shares.items() if name in GATED and row["share"] < LEAST_SHARE]
    if "--json" in sys.argv:
        stamp = describe("cpu").to_dict()
        found = {"rows": table, "tuned": shares, "cache": states, "rounds": rounds, "load": os.getloadavg()}
        print(json.dumps({**found, "stamp": stamp}, indent=1))
    else:
        show(table, shares, states)
    return 1 if bad or slow else 0


def show(table: list[dict[str, Any]], shares: dict[str, dict[str, Any]], states: list[str]) -> None:
    """The tables as text."""
    print(*states, f"load averages {', '.join(f'{load:.1f}' for load in os.getloadavg())}", sep="\n")
    for row in table:
        print(
            f"{row['decoder']:14} {row['format']:4} {row['size']:8} workers {row['workers']}  "
            f"step {row['step_s'] * 1e3:3.0f} ms {'busy' if row['step_on_cpu'] else '    '}  "
            f"predicted {row['predicted_per_s']:6.0f}/s  measured {row['measured_per_s']:6.0f}/s  "
            f"{row['error']:+6.1%}  ({row['limit']}; rounds {', '.join(f'{e:+.0%}' for e in row['errors'])})"
        )
    within = sum(abs(row["error"]) <= LARGEST_ERROR for row in table)
    print(f"{within} of {len(table)} configurations are within {LARGEST_ERROR:.0%}")
    for name, row in shares.items():
        print(
            f"tuned pipeline, step {name}: {row['share']:.1%} of min(mock loader, mock trainer), {row['verdict']} "
            f"(runs {', '.join(f'{share:.0%}' for share in row['shares'])})"
        )


if __name__ == "__main__":
    sys.exit(main())
