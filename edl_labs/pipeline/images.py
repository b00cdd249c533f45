"""The stages of an image pipeline, from a file to a batch: each a function of what the one before gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.pipeline.errors import BrokenSample
from edl_labs.pipeline.format_writers import SUFFIX
from edl_labs.pipeline.jpeg import Decoder, decoder
from edl_labs.pipeline.stores import Store

STAGES = ("open", "read", "decode", "transform", "collate", "pin", "copy", "step")


@dataclass(frozen=True)
class Stage:
    """One rung: `fn` takes what the stage before gave, for a sample, or (`per_batch`) for a list of a batch's samples.

    `where` is 'worker' for what loader workers do, 'main' for what the training process does.
    """

    name: str
    fn: Callable[[Any], Any]
    per_batch: bool = False
    where: str = "worker"


class ImageDataset:
    """A map-style data set over a store of JPEGs: read, decode, crop, flip; uint8 (3, crop, crop).

    Crops and flips are drawn from `seed`, the epoch and the sample, so that workers need no generator of their own.
    With `normalise` samples are float32, four times the bytes to make and to hand over; a device does it in passing.
    """

    def __init__(
        self, store: Store, *, decoder: str = "pillow", crop: int = 224, normalise: bool = False, seed: int = 0
    ) -> None:
        if store.kind != "image":
            raise UsageError(
                f"the store holds samples of kind {store.kind!r}",
                why="an ImageDataset decodes JPEGs",
                next="write images",
            )
        self.store, self.decoder, self.crop, self.seed, self.epoch = store, find(decoder), crop, seed, 0
        self.normalise = normalise

    def __len__(self) -> int:
        return len(self.store)

    def __getitem__(self, sample: int) -> Any:
        name = f"sample {sample} of {self.store.folder.name}"
        # A decoder may take changed bytes for an image: the checksum costs some hundredths of decoding.
        image = self.decoder(self.store.read(sample, verify=True), sample=name)
        return augmented(
            image, crop=self.crop, seed=(self.seed, self.epoch, sample), normalise=self.normalise, sample=name
        )


def find(name: str) -> Decoder:
    """The decoder of that name on this machine."""
    return decoder(name)


def augmented(
    image: Any, *, crop: int, seed: tuple[int, ...], normalise: bool = False, sample: str = "the image"
) -> Any:
    """A random crop, flipped half of the time, (3, crop, crop): uint8, or float32 with `normalise`."""
    import numpy as np

    height, width = image.shape[:2]
    if min(height, width) < crop:
        raise BrokenSample(sample, f"{height} x {width} pixels are too few for a crop of {crop}")
    rng = np.random.default_rng(seed)
    top, left = int(rng.integers(0, height - crop + 1)), int(rng.integers(0, width - crop + 1))
    part = image[top : top + crop, left : left + crop]
    if rng.random() < 0.5:
        part = part[:, ::-1]
    part = np.ascontiguousarray(part.transpose(2, 0, 1))
    if not normalise:
        return part
    scaled = part.astype(np.float32)
    # The means and deviations that image models are trained with (ImageNet), in levels.
    scaled -= np.array([123.7, 116.3, 103.5], dtype=np.float32)[:, None, None]
    scaled *= np.array([1 / 58.4, 1 / 57.1, 1 / 57.4], dtype=np.float32)[:, None, None]
    return scaled


def collate(samples: Sequence[Any]) -> Any:
    """A batch as one tensor (n, 3, crop, crop)."""
    import numpy as np
    import torch

    shapes = {sample.shape for sample in samples}
    if len(shapes) != 1:
        raise UsageError(
            f"the samples of a batch have the shapes {sorted(shapes)}",
            why="a tensor has one shape",
            next="crop to one size, or pad in your own collate",
        )
    return torch.from_numpy(np.stack(samples))


def image_stages(
    store: Store,
    *,
    decoder: str = "pillow",
    crop: int = 224,
    step: Callable[[Any], Any] | None = None,
    device: str = "cpu",
    normalise: bool = False,
) -> list[Stage]:
    """The stages of `store` that there are here: no open in a shard, no pin and no copy without an accelerator."""
    chosen = find(decoder)

    def transform(image: Any) -> Any:
        return augmented(image, crop=crop, seed=(0,), normalise=normalise)

    stages = [Stage("open", _opened(store)), Stage("read", _read_file)] if store.format == "raw" else []
    if not stages:
        stages = [Stage("read", store.read)]
    stages += [Stage("decode", chosen), Stage("transform", transform), Stage("collate", collate, per_batch=True)]
    if device != "cpu":
        stages += [
            Stage("pin", lambda batch: batch.pin_memory(), per_batch=True, where="main"),
            Stage("copy", lambda batch: batch.to(device, non_blocking=True), per_batch=True, where="main"),
        ]
    if step is not None:
        stages.append(Stage("step", step, per_batch=True, where="main"))
    return stages


def left_out(stages: Sequence[Stage]) -> dict[str, str]:
    """Why a rung is not there."""
    reasons = {
        "open": "samples lie in a file that stays open",
        "pin": "without an accelerator nothing is pinned",
        "copy": "without an accelerator nothing is copied",
        "step": "no step was given",
    }
    there = {stage.name for stage in stages}
    return {name: reasons[name] for name in STAGES if name in reasons and name not in there}


def _opened(store: Store) -> Callable[[int], Any]:
    # By number, not by what is there: a missing file would shift all that come after it.
    paths = [store.folder / f"{sample:08d}.{SUFFIX[store.kind]}" for sample in range(len(store))]

    def opened(sample: int) -> Any:
        try:
            return open(paths[sample], "rb", buffering=0)
        except OSError as error:
            name = f"sample {sample} of {store.folder.name}"
            raise BrokenSample(name, f"{type(error).__name__}: {error}") from error

    return opened


def _read_file(file: Any) -> bytes:
    file.seek(0)
    return bytes(file.read())
