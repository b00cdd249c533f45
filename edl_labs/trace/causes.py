"""The causes among which wall time is shared out: a row each says what is charged to it, its words and its colour."""

from __future__ import annotations

import re
from dataclasses import dataclass

from edl_labs.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, RED

_DATA = re.compile(
    r"dataloader|data_?loading|\bdata\b|next_?batch|(get|load|fetch)_?(batch|data)|collate|\binput_?pipeline\b",
    re.IGNORECASE,
)
# What torch calls a collective of a CPU: it has no other event, and covers what runs meanwhile.
_ON_CPU = re.compile(r"(gloo|mpi|ucc):")
GENERATED = "CompiledFxGraph"  # in torch.compile's mark around code that it generated
EMPTY_CACHE = re.compile(r"empty_?cache", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause: its verdict and what usually helps, its colour and hatching, and which events are charged to it.

    `kinds` are the kinds of events that are charged to it; `words` the names of annotations that are, and `encloses`
    says that what is inside such an event is charged to it as well. A cause that `holds` can keep the host waiting
    for the device; one that is `late` comes too late for the device because something held the host before it.
    `without` says how a VirtualGPU runs without it, and is empty where it cannot. `on_cpu` replaces verdict and advice
    where there is no device.
    """

    name: str
    verdict: str
    advice: str
    colour: str
    hatch: str = ""
    kinds: tuple[str, ...] = ()
    words: re.Pattern[str] | None = None
    encloses: bool = False
    holds: bool = False
    late: bool = False
    without: str = ""
    on_cpu: tuple[str, str] | None = None

    def verdict_and_advice(self, *, on_device: bool) -> tuple[str, str]:
        """The verdict when this cause dominates, and what usually helps."""
        return (self.verdict, self.advice) if on_device or self.on_cpu is None else self.on_cpu


# In the order in which shares are shown; of work that overlaps on the device the cause that comes first counts.
# Eight causes are more than six colours can tell apart: some are hatched.
TABLE = (
    Cause(
        name="compute",
        verdict="GPU-bound",
        advice="the device computes most of the time; use better kernels, lower precision or a smaller model",
        on_cpu=(
            "compute-bound",
            "the operators compute most of the time; use faster operators, fewer FLOPs or more cores",
        ),
        colour=BLUE,
        kinds=("kernel",),
        without="a tiny model: kernels take no time",
    ),
    Cause(
        name="communication",
        verdict="communication-bound",
        advice="overlap collectives with the backward pass, or send less data",
        colour=BLUE,
        hatch="xx",
        kinds=("communication",),
        words=_ON_CPU,
    ),
    Cause(
        name="copy",
        verdict="copy-bound",
        advice="pin memory, copy with non_blocking=True in a side stream, and copy smaller data types",
        colour=PURPLE,
        kinds=("copy", "copy call"),
        holds=True,
        without="copies from pinned memory, in a stream of their own",
    ),
    Cause(
        name="launch",
        verdict="launch-bound",
        advice="use torch.compile or CUDA graphs, fused optimisers, and larger batches",
        on_cpu=("overhead-bound", "the operators are too small; batch them, fuse them, or use torch.compile"),
        colour=ORANGE,
        kinds=("launch", "runtime", "operator", "queue full"),
        late=True,
        without="the step captured as a graph: one launch per step",
    ),
    Cause(
        name="sync",
        verdict="synchronisation-bound",
        advice="keep numbers on the device, and read them only every few hundred steps",
        colour=RED,
        kinds=("sync",),
        holds=True,
        without="no host reads and no synchronisations",
    ),
    Cause(
        name="data",
        verdict="data-bound",
        advice="use more workers, prefetching, cheaper decoding, or data prepared offline",
        colour=GREEN,
        words=_DATA,
        encloses=True,
        without="one cached batch",
    ),
    Cause(
        name="alloc",
        verdict="allocation-bound",
        advice="allocate once, pad inputs to a few sizes, and remove empty_cache()",
        colour=GREY,
        kinds=("alloc",),
        words=EMPTY_CACHE,
        encloses=True,
        holds=True,
        without="memory allocated once",
    ),
    Cause(
        name="host",
        verdict="host-bound",
        advice="move work out of the loop's Python code, or do it after the launches",
        colour=GREY,
        hatch="//",
        late=True,
        without="no code between the calls",
    ),
)
CAUSES = tuple(cause.name for cause in TABLE)
BY_NAME = {cause.name: cause for cause in TABLE}
VERDICTS = {cause.name: (cause.verdict, cause.advice) for cause in TABLE}
ABLATIONS = {cause.name: cause.without for cause in TABLE if cause.without}
CHARGED = {kind: cause.name for cause in TABLE for kind in cause.kinds}
HOLDS = tuple(cause.name for cause in TABLE if cause.holds)
LATE = tuple(cause.name for cause in TABLE if cause.late)
ENCLOSING = tuple(cause.name for cause in TABLE if cause.encloses)


def named_cause(name: str) -> str | None:
    """The cause to which an annotation of this name is charged; None where the name tells nothing.

    >>> named_cause("dataloader"), named_cause("torch.cuda.empty_cache"), named_cause("forward")
    ('data', 'alloc', None)
    """
    # From the end: emptying the cache while batches are loaded is allocation.
    return next((cause.name for cause in reversed(TABLE) if cause.words and cause.words.search(name)), None)
