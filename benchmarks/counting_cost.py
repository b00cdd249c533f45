"""How much time counting takes: a training step without counting, with edl_labs, and with torch's FlopCounterMode.

The three alternate. Run it on a machine that does nothing else: `python benchmarks/counting_cost.py`.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from edl_labs.roofline import count
from edl_labs.roofline.operators.recorder import Recorder


def step(model: nn.Module, x: torch.Tensor) -> None:
    """One forward and backward pass."""
    for parameter in model.parameters():
        parameter.grad = None
    model(x).sum().backward()


def flop_counted(model: nn.Module, x: torch.Tensor) -> None:
    """The same under torch's counter."""
    with FlopCounterMode(display=False):
        step(model, x)


def recorded(model: nn.Module, x: torch.Tensor) -> None:
    """The same under our recorder, nothing reckoned yet."""
    with Recorder({module: name for name, module in model.named_modules()}):
        step(model, x)


def models() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    """Steps of a few milliseconds and of many."""
    layers = [layer for _ in range(8) for layer in (nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512))]
    block = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    return {
        "8-layer perceptron, 64 × 512": (nn.Sequential(*layers), torch.randn(64, 512)),
        "transformer block, 8 × 128 × 256": (block, torch.randn(8, 128, 256)),
    }


def main(rounds: int = 15) -> None:
    """One line for each model: milliseconds, and how many times slower each way of counting is."""
    ways = {"alone": step, "recorded": recorded, "counted": count, "FlopCounterMode": flop_counted}
    for name, (model, x) in models().items():
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, run in ways.items():
                start = time.perf_counter()
                run(model, x)
                times[way].append(time.perf_counter() - start)
        alone = statistics.median(times["alone"])
        told = ", ".join(f"{way} {statistics.median(taken) / alone:.2f}×" for way, taken in times.items())
        print(f"{name}: {1e3 * alone:.2f} ms without counting; {told}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
