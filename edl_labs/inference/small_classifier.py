"""A small convolutional network, trained in seconds on drawn images: something to make smaller.

Ten blurred patterns, shifted and in noise, are classified; a few hot pixels shine thirty times as bright, as a sensor's
do. Nothing is downloaded, and the same seed draws the same images on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SIDE = 12  # pixels: the smallest at which a training takes seconds and the patterns are told apart
_HOT = 0.002  # of the pixels: one in every fourth image
_BRIGHT = 30.0  # beside noise of about 1
_CLASSES = 10  # as many patterns: guessing gets a tenth right


def small_images(count: int, *, seed: int) -> tuple[Any, Any]:
    """(images, labels): count × 1 × 12 × 12 float32, and classes 0 to 9."""
    import torch

    made = torch.Generator().manual_seed(7)
    patterns = torch.randn(_CLASSES, 1, 4, 4, generator=made)
    patterns = torch.nn.functional.interpolate(patterns, _SIDE, mode="bicubic")
    drawn = torch.Generator().manual_seed(seed)
    labels = torch.randint(_CLASSES, (count,), generator=drawn)
    down, right = torch.randint(-1, 2, (2, count), generator=drawn)
    rows = (torch.arange(_SIDE) - down.view(-1, 1)) % _SIDE
    columns = (torch.arange(_SIDE) - right.view(-1, 1)) % _SIDE
    images = patterns[labels][torch.arange(count).view(-1, 1, 1), 0, rows.unsqueeze(2), columns.unsqueeze(1)]
    images = images.unsqueeze(1) + torch.randn(count, 1, _SIDE, _SIDE, generator=drawn)
    hot = torch.rand(images.shape, generator=drawn) < _HOT
    return images.masked_fill(hot, _BRIGHT), labels


def small_classifier(*, seed: int = 1) -> Any:
    """An untrained `nn.Sequential`: four convolutions (one depth-wise, one grouped), batch norms, a linear layer."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    convolutions = (
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False),
        nn.Conv2d(16, 32, 1, bias=False),
        nn.Conv2d(32, 32, 3, stride=2, groups=2, bias=False),
    )
    layers: list[Any] = []
    for one in convolutions:
        layers += [one, nn.BatchNorm2d(one.out_channels), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, _CLASSES))


def train_classifier(model: Any, *, steps: int, rate: float = 1e-2, masks: Mapping[str, Any] | None = None) -> Any:
    """The same model after so many steps of Adam on 64 images each, in inference mode.

    `masks` keeps parameters pruned: by a parameter's name, what its weights are multiplied by after each step.
    """
    import torch
    from torch.nn.functional import cross_entropy

    images, labels = small_images(64 * 64, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), rate)
    named, masks = dict(model.named_parameters()), dict(masks or {})
    model.train()
    for step in range(steps):
        at = slice(64 * (step % 64), 64 * (step % 64 + 1))
        optimizer.zero_grad()
        cross_entropy(model(images[at]), labels[at]).backward()
        optimizer.step()
        with torch.no_grad():
            for name, mask in masks.items():
                named[name].mul_(mask)
    return model.eval()


def uneven_channels(model: Any, *, most: float = 4.0, seed: int = 3) -> Any:
    """The same model with channels up to `most` times larger or smaller, and the same answers.

    A channel of a batch norm is multiplied by a factor and what the next convolution reads of it divided by the same:
    ReLU lets factors through. Trained mobile networks have such channels naturally (Nagel et al., 2019).
    """
    import torch
    from torch import nn

    drawn = torch.Generator().manual_seed(seed)
    convolutions = [one for one in model if isinstance(one, nn.Conv2d)]
    norms = [one for one in model if isinstance(one, nn.BatchNorm2d)]
    with torch.no_grad():
        for norm, reader in zip(norms, convolutions[1:], strict=False):
            factor = most ** (2 * torch.rand(norm.num_features, generator=drawn) - 1)
            norm.weight.mul_(factor)
            norm.bias.mul_(factor)
            read = factor.view(reader.groups, -1).repeat_interleave(reader.out_channels // reader.groups, dim=0)
            reader.weight.div_(read.view(reader.out_channels, -1, 1, 1))
    return model
