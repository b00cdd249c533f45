"""The stages of an image pipeline, and the stage ladder: what each takes alone, and all up to it together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Any

from edl_labs.arguments import checked_arguments
from edl_labs.clock import Clock
from edl_labs.errors import UsageError
from edl_labs.pipeline.errors import BrokenSample
from edl_labs.pipeline.format_writers import SUFFIX
from edl_labs.pipeline.jpeg import Decoder, decoder
from edl_labs.pipeline.processor_time import measure_waiting
from edl_labs.pipeline.stores import Store
from edl_labs.presenters import Plottable
from edl_labs.units import seconds
from edl_labs.values import Value

if TYPE_CHECKING:
    import torch

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
                f"the store contains samples of kind {store.kind!r}",
                why="an ImageDataset decodes JPEGs",
                next="pass a store of images",
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


@checked_arguments()
def collate(samples: Sequence[Any]) -> torch.Tensor:
    """A batch as one tensor (n, 3, crop, crop)."""
    import numpy as np
    import torch

    shapes = {np.shape(sample) for sample in samples}
    if len(shapes) != 1:
        raise UsageError(
            f"the samples of a batch have the shapes {sorted(shapes)}",
            why="all samples of a batch must have the same shape",
            next="crop all samples to one size, or pad them in your own collate function",
        )
    return torch.from_numpy(np.stack(samples))


@checked_arguments()
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
    """Why a stage is missing."""
    reasons = {
        "open": "the samples are in a file that stays open",
        "pin": "nothing is pinned without an accelerator",
        "copy": "nothing is copied without an accelerator",
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


# What one stage gave is held for the next: open files, whose number is limited, and decoded images, which are large.
_HELD = 48


@dataclass(frozen=True, repr=False)
class Rung(Value):
    """One stage: seconds a sample alone with its interval, and seconds a sample of everything up to it.

    `waited_s` of `alone_s` is waiting (for a disk, a network), which needs no core.
    """

    name: str
    alone_s: float
    low_s: float
    high_s: float
    cumulative_s: float
    where: str
    waited_s: float = 0.0


@dataclass(frozen=True, repr=False)
class Ladder(Value, Plottable):
    """All rungs, the batch size that collating was priced at, and why other rungs are missing.

    `cache` says whether files were in the page cache: a warm figure says nothing about a cold one.
    """

    ROWS = "rungs"

    rungs: tuple[Rung, ...]
    batch_size: int
    cache: str = "unknown"
    left_out: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Rung:
        return next(rung for rung in self.rungs if rung.name == name)

    @property
    def worker_s(self) -> float:
        """What a worker does for a sample, added up from the stages alone."""
        return sum(rung.alone_s for rung in self.rungs if rung.where == "worker")

    @property
    def waited_s(self) -> float:
        """What of `worker_s` is waiting: a `LoaderModel` lets only the rest compete for cores."""
        return sum(rung.waited_s for rung in self.rungs if rung.where == "worker")

    @property
    def main_s(self) -> float:
        """The time of the training process per sample."""
        return sum(rung.alone_s for rung in self.rungs if rung.where == "main")

    @property
    def slowest(self) -> Rung:
        """The stage that takes longest when it runs alone."""
        return max(self.rungs, key=lambda rung: rung.alone_s)

    def __str__(self) -> str:
        rows = [f"{'stage':10} {'alone':>10} {'':>5} {'so far':>10}   per sample, page cache {self.cache}"]
        for rung in self.rungs:
            spread = f"± {max(rung.high_s - rung.alone_s, rung.alone_s - rung.low_s) / rung.alone_s:.0%}"
            rows.append(f"{rung.name:10} {seconds(rung.alone_s):>10} {spread:>5} {seconds(rung.cumulative_s):>10}")
        return "\n".join([*rows, *(f"{name:10} {'-':>10}   {why}" for name, why in self.left_out.items())])


@checked_arguments()
def measure_ladder(
    stages: Sequence[Stage],
    samples: Sequence[Any],
    *,
    batch_size: int = 32,
    budget_s: float = 0.15,
    clock: Clock | None = None,
    cache: str = "unknown",
) -> Ladder:
    """The `Ladder` of `stages` over `samples` (what the first stage takes), each stage for `budget_s` twice.

    A stage alone gets what the stages before it gave, made beforehand, of at most 48 samples (or batches) spread over
    all; a stage of a batch gets batches of `batch_size`. Waiting is distinguished from work by the process's own
    clocks, in a short run more; with a `clock` of your own there is none. BrokenSample names the one of `samples` that
    a stage refused.
    """
    if not stages or not samples:
        raise UsageError(
            "there is nothing to measure",
            why="a measurement needs stages and samples",
            next="pass stages, for example image_stages(store)",
        )
    given = [(sample, sample) for sample in samples]
    rungs: list[Rung] = []
    chain: list[Stage] = []
    for stage in stages:
        if stage.per_batch and not any(before.per_batch for before in chain):
            given = [_transposed(batch) for batch in _batches(given, batch_size)]
        chain.append(stage)
        share = batch_size if stage.per_batch else 1
        alone = _timed(stage.fn, given, budget_s, clock, stage.name)
        inputs = _batches(samples, batch_size) if stage.per_batch else list(samples)
        together = _timed(_composed(chain), [(value, value) for value in inputs], budget_s, clock, stage.name)
        rungs.append(
            Rung(
                stage.name,
                alone.median_s / share,
                alone.low_s / share,
                alone.high_s / share,
                together.median_s / share,
                stage.where,
                alone.median_s / share * (0.0 if clock is not None else _waited_share(stage.fn, given, budget_s)),
            )
        )
        given = [(sample, _numbered(stage.fn, sample, value)) for sample, value in _spread(given)]
    return Ladder(tuple(rungs), batch_size, cache, left_out(stages))


def _spread(values: list[Any]) -> list[Any]:
    """The values, or as many as may be held, from all over them."""
    count = min(len(values), _HELD)
    return [values[n * len(values) // count] for n in range(count)]


def _batches(values: Sequence[Any], batch_size: int) -> list[list[Any]]:
    """Batches of the full size that go through the values, and round again where the last one is not full."""
    count = len(values)
    return [[values[(start + n) % count] for n in range(batch_size)] for start in range(0, count, batch_size)]


def _transposed(pairs: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [sample for sample, _ in pairs], [value for _, value in pairs]


def _numbered(fn: Callable[[Any], Any], sample: Any, value: Any) -> Any:
    """`fn(value)`: stages pass bytes and images on, and only who gives them their input knows whose these are."""
    try:
        return fn(value)
    except BrokenSample as error:
        if error.sample.startswith("sample "):
            raise
        name = f"one of the samples {sample}" if isinstance(sample, list) else f"sample {sample}"
        raise BrokenSample(name, error.problem) from error


def _composed(chain: Sequence[Stage]) -> Callable[[Any], Any]:
    each = [stage.fn for stage in chain if not stage.per_batch]
    whole = [stage.fn for stage in chain if stage.per_batch]

    def one(value: Any) -> Any:
        for fn in each:
            value = fn(value)
        return value

    def batch(values: Any) -> Any:
        result: Any = [_numbered(one, value, value) for value in values]
        for fn in whole:
            result = fn(result)
        return result

    return batch if whole else one


def _waited_share(fn: Callable[[Any], Any], given: list[tuple[Any, Any]], budget_s: float) -> float:
    turn = cycle(given)
    return measure_waiting(lambda: _numbered(fn, *next(turn)), seconds=budget_s / 3).waited_share


def _timed(
    fn: Callable[[Any], Any], given: list[tuple[Any, Any]], budget_s: float, clock: Clock | None, name: str
) -> Any:
    from edl_labs.bench import measure

    turn = cycle(given)
    return measure(lambda: _numbered(fn, *next(turn)), budget_s=budget_s, clock=clock, name=name, detect=False)
