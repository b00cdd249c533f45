"""train_it: a small network whose activations and gradients pass through fp16, judged by its loss in fp32."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from edl_labs.errors import Wrong

_CASES = 3
_STEPS = 160
_NOISE = 0.7
_INPUTS, _HIDDEN, _OUTPUTS, _BATCH = 6, 16, 4, 32
_ALLOWED = 1.02


class TrainIt:
    """`student.train_in_half(model, batches, optimizer, scaler)` trains; the evidence is the weights it leaves.

    Trusting: whether the student's code sent its gradients through the model that it was given cannot be seen in them.
    """

    form: ClassVar[Any] = {"weights": [0.0], "scale": 0.0}

    def cases(self, rng: Any) -> list[Any]:
        return [
            {
                "seed": int(rng.integers(2**31)),
                "loss_weight": float(2.0 ** -rng.integers(24, 27)),
                "init_scale": float(2.0 ** rng.integers(45, 48)),
                "growth_interval": int(rng.integers(40, 70)),
            }
            for _ in range(_CASES)
        ]

    def probe(self, student: Any, case: Any) -> Any:
        import torch

        scaler = student.LossScaler(init_scale=case["init_scale"], growth_interval=case["growth_interval"])
        model, optimizer = _model(case, short=True)
        with _one_thread():
            student.train_in_half(model, _batches(case), optimizer, scaler)

        return {"weights": _weights(model), "scale": float(scaler.scale(torch.tensor(1.0)))}

    def public(self, case: Any, want: Any) -> Any:
        """The scale alone: trained weights differ from one processor to the next."""
        return {"weights": [], "scale": want["scale"]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        with _one_thread():
            start, light = _reference(case)
            loss = _loss(case, got["weights"])
        why = f"loss {loss:.4g} after training; fp32 reaches {light:.4g} from {start:.4g}"
        if not math.isfinite(loss):
            raise Wrong("the weights are no numbers any more", why=why, next="a step with infinite gradients was taken")
        if start - loss < 0.5 * (start - light):
            then = "are gradients scaled, unscaled, and is the scale brought down when they overflow?"
            raise Wrong("the network did not learn", why=why, next=then)
        if loss > _ALLOWED * light:
            raise Wrong(
                "the network is more than 2 % behind fp32", why=why, next="zero the gradients, use every batch once"
            )
        if not want["scale"] / 4 <= got["scale"] <= want["scale"] * 4:
            why = f"it ended at {got['scale']:g}, and {want['scale']:g} is expected"
            raise Wrong("the scaler was not kept up to date", why=why, next="update() once after every step()")

    def show(self, case: Any) -> str:
        """The settings."""
        return f"loss weight {case['loss_weight']:g}, first scale {case['init_scale']:g}, {_STEPS} batches"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Products this small are slower, and much slower on a busy machine, when threads share them."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _model(case: Any, *, short: bool) -> tuple[Any, Any]:
    """A network whose `loss(x, y)` is a mean square times a small weight, and the optimizer for it."""
    import torch

    generator = torch.Generator().manual_seed(case["seed"])
    through = _short() if short else (lambda x: x)

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.loss_weight = case["loss_weight"]
            self.first, self.last = torch.nn.Linear(_INPUTS, _HIDDEN), torch.nn.Linear(_HIDDEN, _OUTPUTS)

        def forward(self, x: Any) -> Any:
            return through(self.last(through(torch.tanh(through(self.first(through(x)))))))

        def loss(self, x: Any, y: Any) -> Any:
            return self.loss_weight * (self(x) - y).square().mean()

    model = Network()
    with torch.no_grad():
        for one in model.parameters():
            one.copy_(torch.empty_like(one).normal_(0, 0.4, generator=generator))
    return model, torch.optim.SGD(model.parameters(), lr=0.15 / case["loss_weight"])


def _short() -> Any:
    import torch

    class Short(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.half().float()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient.half().float()

    return Short.apply


def _batches(case: Any, *, count: int = _STEPS, offset: int = 1) -> list[Any]:
    import torch

    generator = torch.Generator().manual_seed(case["seed"] + offset)
    teacher = torch.empty(_INPUTS, _OUTPUTS).normal_(generator=torch.Generator().manual_seed(case["seed"] + 7))
    xs = [torch.empty(_BATCH, _INPUTS).normal_(generator=generator) for _ in range(count)]
    # Noise that no network can learn keeps the loss from falling for ever, so that a few skipped steps do not decide.
    noise = [torch.empty(_BATCH, _OUTPUTS).normal_(0, _NOISE, generator=generator) for _ in xs]
    return [(x, torch.sin(x @ teacher) + more) for x, more in zip(xs, noise, strict=True)]


def _weights(model: Any) -> list[float]:
    return [float(value) for one in model.parameters() for value in one.detach().flatten()]


def _loss(case: Any, weights: list[float]) -> float:
    """The fp32 loss of a network with these weights on batches that it was not trained with."""
    import torch

    model, _ = _model(case, short=False)
    flat, start = torch.tensor(weights, dtype=torch.float32), 0
    if flat.numel() != sum(one.numel() for one in model.parameters()):
        return math.nan
    with torch.no_grad():
        for one in model.parameters():
            one.copy_(flat[start : start + one.numel()].reshape(one.shape))
            start += one.numel()
        losses = [float(model.loss(x, y)) for x, y in _batches(case, count=8, offset=2)]
    return sum(losses) / len(losses) / case["loss_weight"]


def _reference(case: Any) -> tuple[float, float]:
    """The loss before training, and after training in fp32."""
    model, optimizer = _model(case, short=False)
    start = _loss(case, _weights(model))
    for x, y in _batches(case):
        optimizer.zero_grad()
        model.loss(x, y).backward()
        optimizer.step()
    return start, _loss(case, _weights(model))
