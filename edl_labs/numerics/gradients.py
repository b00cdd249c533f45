"""Gradients of a real training run: of every layer's output and of every parameter, by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from edl_labs.arguments import checked_arguments, require_amount
from edl_labs.errors import UsageError

# A detector that a laptop trains in two seconds.
_CLASSES, _SIZE, _BATCH = 6, 32, 8


@checked_arguments()
def recorded_gradients(model: torch.nn.Module, loss: Callable[[], torch.Tensor]) -> dict[str, torch.Tensor]:
    """The gradients of one backward pass of `loss()`: 'layer output' of each leaf module and 'name' of each parameter.

    `loss` runs the model and returns one number. Gradients of the parameters are left in place; those of an earlier
    pass are dropped first.
    """
    outputs: dict[str, torch.Tensor] = {}
    handles = [
        module.register_forward_hook(_keeper(outputs, name or "model"))
        for name, module in model.named_modules()
        if not list(module.children())
    ]
    try:
        value = loss()
    finally:
        for handle in handles:
            handle.remove()
    if not (isinstance(value, torch.Tensor) and value.numel() == 1 and value.requires_grad):
        raise UsageError(
            "loss() returned nothing that can be differentiated",
            why="a backward pass starts from a single number that depends on the parameters",
            next="return the loss as a tensor, outside torch.no_grad()",
        )
    for parameter in model.parameters():
        parameter.grad = None
    value.backward()
    kept = {f"{name} output": tensor.grad for name, tensor in outputs.items() if tensor.grad is not None}
    grads = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return {name: gradient.detach().clone() for name, gradient in (kept | grads).items()}


@checked_arguments()
def training_gradients(*, steps: int = 28, seed: int = 0) -> dict[str, torch.Tensor]:
    """Gradients of a small detector after `steps` steps of training in fp32 on the CPU: about two seconds.

    Like the network of deck [002], it classifies every place of an image, and its loss is a mean over all of them:
    most places are easy background, so that most gradients are tiny. The data are drawn from `seed`.
    """
    require_amount(steps=steps)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _detector()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
        for _ in range(steps):
            optimizer.zero_grad()
            _loss(model, *_scenes(_BATCH)).backward()
            optimizer.step()
        optimizer.zero_grad()
        batch = _scenes(_BATCH)
        return recorded_gradients(model, lambda: _loss(model, *batch))


def _detector() -> nn.Sequential:
    widths = (3, 8, 8, 16, 16)
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(widths[-1], _CLASSES, 1))


def _scenes(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of noise with one bright square each, and the class of every place: 0 is background."""
    images = 0.3 * torch.randn(count, 3, _SIZE, _SIZE)
    labels = torch.zeros(count, _SIZE, _SIZE, dtype=torch.long)
    for i in range(count):
        kind = int(torch.randint(1, _CLASSES, ()))
        top, left = (int(v) for v in torch.randint(0, _SIZE - 6, (2,)))
        images[i, kind % 3, top : top + 6, left : left + 6] += 0.5 + 0.5 * kind
        labels[i, top : top + 6, left : left + 6] = kind
    return images, labels


def _loss(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(images), labels)


def _keeper(outputs: dict[str, torch.Tensor], name: str) -> Callable[..., None]:
    def keep(_module: Any, _inputs: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor) and output.requires_grad:
            output.retain_grad()
            outputs[name] = output

    return keep
