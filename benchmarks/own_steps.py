"""Steps of eleven models on this machine's GPU, eager and compiled, compared with predictions made before.

    python benchmarks/own_steps.py [--out FILE] [--models N] [--budget SECONDS]

All predictions are written to FILE before anything is measured. In the end, FILE contains the predictions, the
measurements, the errors and a description of the machine. The steps are training steps with AMP in bf16 and momentum,
on 64 images of 224 x 224 (the decoder: 8 sequences of 512 tokens). You need CUDA and a GPU that is in the hardware
table. Exit status 1 means that the median error is above 8 %.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from edl_labs.bench import measure
from edl_labs.device import Device, describe
from edl_labs.errors import EdlError
from edl_labs.predict import predict_step
from edl_labs.units import percent, seconds

TARGET = 0.08  # of the median error, as on published steps
CONVNETS = (
    *("resnet50", "resnext50_32x4d", "densenet121", "vgg16", "mobilenet_v2", "efficientnet_b0", "regnet_y_1_6gf"),
    *("convnext_tiny", "vit_b_16", "swin_t"),
)


@dataclass
class OwnStep:
    """A model's step: what was said before, and what it took."""

    model: str
    compiled: bool
    predicted_s: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    measured_s: float = 0.0
    measured_low_s: float = 0.0
    measured_high_s: float = 0.0
    why_not: str = ""

    @property
    def error(self) -> float:
        """Relative, of the prediction."""
        return self.predicted_s / self.measured_s - 1


class Decoder(nn.Module):
    """12 layers of width 768 over 512 tokens, causal, with an output for each of 32,000 tokens."""

    def __init__(self) -> None:
        super().__init__()
        block = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True, norm_first=True)
        self.embedding, self.blocks = nn.Embedding(32_000, 768), nn.TransformerEncoder(block, 12)
        self.head = nn.Linear(768, 32_000, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, length) to logits (batch, length, 32000)."""
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        found: torch.Tensor = self.head(self.blocks(self.embedding(tokens), mask=mask, is_causal=True))
        return found


Workload = tuple[str, Callable[[], nn.Module], Callable[[], torch.Tensor]]


def workloads() -> list[Workload]:
    """Name, model and example of each; nothing is made yet."""
    import torchvision

    images = lambda: torch.randn(64, 3, 224, 224)  # noqa: E731
    tokens = lambda: torch.randint(32_000, (8, 512))  # noqa: E731
    return [*((name, getattr(torchvision.models, name), images) for name in CONVNETS), ("decoder", Decoder, tokens)]


def predictions(loads: Sequence[Workload], machine: str) -> list[OwnStep]:
    """All models eager, then compiled, from examples on meta: nothing runs on the device."""
    found = []
    for compiled in (False, True):
        for name, make, example in loads:
            step = OwnStep(name, compiled)
            try:
                told = predict_step(
                    make().train(), example().to("meta"), machine, dtype="amp_bf16", compiled=compiled,
                    optimizer="momentum",
                )  # fmt: skip
            except EdlError as error:
                step.why_not = str(error)
            else:
                step.predicted_s, step.low_s, step.high_s = told.step_s, told.low_s, told.high_s
            found.append(step)
    return found


def training_step(model: nn.Module, batch: torch.Tensor) -> Callable[[], None]:
    """One step with AMP in bf16 and momentum, as it is predicted: the output is summed for a loss."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)

    def step() -> None:
        with torch.autocast(batch.device.type, torch.bfloat16):
            loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def measured(step: OwnStep, load: Workload, device: str, budget_s: float) -> None:
    """Measure one step into `step`; what cannot run is said in `why_not`."""
    _, make, example = load
    torch.manual_seed(0)
    model = make().train().to(device)
    try:
        chosen: Any = torch.compile(model) if step.compiled else model
        run = training_step(chosen, example().to(device))
        for _ in range(3):  # compiling and choosing kernels are no part of a step
            run()
        found = measure(run, budget_s=budget_s, name=step.model)
    except (RuntimeError, EdlError) as error:
        step.why_not = f"{type(error).__name__}: {error}"[:300]
        return
    step.measured_s, step.measured_low_s, step.measured_high_s = found.median_s, found.low_s, found.high_s


def own_steps(loads: Sequence[Workload], machine: str, out: Path, *, device: str, budget_s: float) -> list[OwnStep]:
    """Predict all, write that down, measure all, write both down."""
    steps = predictions(loads, machine)
    write(out, steps, machine, None)
    for at, step in enumerate(steps):
        print(
            f"[{at + 1}/{len(steps)}] {step.model}{', compiled' if step.compiled else ''}", file=sys.stderr, flush=True
        )
        if not step.why_not:
            measured(step, loads[at % len(loads)], device, budget_s)
        write(out, steps, machine, describe(device))
    return steps


def write(out: Path, steps: Sequence[OwnStep], machine: str, stamp: Device | None) -> None:
    """The recording: predictions alone as long as `stamp` is None."""
    plain = {"machine": machine, "stamp": None if stamp is None else asdict(stamp), "steps": [asdict(s) for s in steps]}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(plain, indent=1, default=str) + "\n", encoding="utf-8")


def table(steps: Sequence[OwnStep]) -> str:
    """Markdown: a row a step, then the median error."""
    lines = ["| model | | predicted | 80 % interval | measured | error |", "|---|---|---|---|---|---|"]
    for one in steps:
        how = "compiled" if one.compiled else "eager"
        if one.why_not:
            lines.append(f"| {one.model} | {how} | {one.why_not.splitlines()[0]} | | | |")
            continue
        between = f"{seconds(one.low_s)} to {seconds(one.high_s)}"
        row = (one.model, how, seconds(one.predicted_s), between, seconds(one.measured_s), percent(one.error))
        lines.append(f"| {' | '.join(row)} |")
    errors = [abs(one.error) for one in steps if not one.why_not]
    if errors:
        inside = sum(one.low_s <= one.measured_s <= one.high_s for one in steps if not one.why_not)
        median = statistics.median(errors)
        lines.append(f"\nmedian error {percent(median)} of {len(errors)} steps; {inside} are inside their interval")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Run it all on CUDA; 3 says why nothing was run."""
    after = lambda name, other: arguments[arguments.index(name) + 1] if name in arguments else other  # noqa: E731
    if not torch.cuda.is_available():
        print("own_steps.py needs a CUDA device, but this machine has none.", file=sys.stderr)
        return 3
    machine = torch.cuda.get_device_name()
    out = Path(after("--out", f"build/own_steps/{machine.replace(' ', '_')}.json"))
    loads = workloads()[: int(after("--models", 99))]
    steps = own_steps(loads, machine, out, device="cuda", budget_s=float(after("--budget", 3.0)))
    print(table(steps))
    errors = [abs(one.error) for one in steps if not one.why_not]
    return int(not errors or statistics.median(errors) > TARGET)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
