"""A detector: one kind of mistake, its message, and what it looks at on the way through a measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

from edl_labs.bench.detectors.call_watches import TorchWatch, VirtualWatch
from edl_labs.bench.detectors.effect_watch import SideEffects
from edl_labs.bench.detectors.started_work import StartedWork
from edl_labs.bench.results import Mistake
from edl_labs.bench.timing.blocks import ArgumentPool, Runner
from edl_labs.bench.timing.processor_state import State
from edl_labs.bench.timing.warmup import BlockPlan
from edl_labs.clock import Clock

TOO_LONG = "a call takes too long to be timed a second time within this budget"


@dataclass
class Look:
    """What the detectors of one measurement share: the function, its arguments, and what was seen of its calls so far.

    `off` says of each kind that cannot be looked for why. `tensors_alive` counts after each call the tensors of all
    calls that are still alive. `items` are the objects that the function and its inputs reached before the first call;
    `repeat` makes one more call with the arguments of the first, and gives its result.
    """

    fn: Callable[..., Any]
    feed: ArgumentPool | None
    clock: Clock
    cold: bool
    budget_s: float
    off: dict[str, str]
    torch: TorchWatch | None = None
    virtual: VirtualWatch | None = None
    items: list[Any] = field(default_factory=list)
    repeat: Callable[[], Any] = lambda: None
    effects: SideEffects = field(default_factory=SideEffects)
    started: StartedWork = field(default_factory=StartedWork)
    threads: set[int] = field(default_factory=set)
    computing: set[int] = field(default_factory=set)
    calls: int = 0
    tensors_alive: list[int] = field(default_factory=list)
    awaits: bool = False

    def arguments(self) -> tuple[Any, ...]:
        """Those of the next call."""
        return self.feed.next() if self.feed else ()

    def tensors_kept(self) -> int:
        """How many tensors of the last call stay alive, where each call but the first leaves some."""
        steps = [after - before for before, after in pairwise(self.tensors_alive[1:])]
        return steps[-1] if steps and min(steps) > 0 else 0


class Detector:
    """One kind of mistake: `what`, `why` and `next` are its message, in which `{detail}` is what was seen.

    Each method is asked at one moment of a measurement, and returns the detail where the mistake shows, else ''.
    """

    kind: ClassVar[str]
    what: ClassVar[str]
    why: ClassVar[str]
    next: ClassVar[str]

    def __init__(self, look: Look) -> None:
        self.look = look

    @classmethod
    def mistake(cls, detail: str) -> Mistake:
        """The message, with what was seen as its detail."""
        return Mistake(cls.kind, cls.what.format(detail=detail), cls.why.format(detail=detail), cls.next)

    def before(self) -> str:
        """Asked before the first call: the code, the inputs, the machine."""
        return ""

    def after_call(self, result: Any) -> str:
        """Asked after each of a few calls that are watched one by one."""
        return ""

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        """Asked after the last of those; `call` makes one more. Not `finished`: they took too long to go on."""
        return ""

    def when_warm(self, runner: Runner, plan: BlockPlan) -> str:
        """Asked once the function is warm, before the blocks that count."""
        return ""

    def after(self, *, plan: BlockPlan, blocks: int, state: State | None) -> str:
        """Asked after the blocks, with how many there were and the processor's state."""
        return ""
