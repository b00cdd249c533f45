"""The cases of name_the_pattern, blame and most_to_gain: steps of training loops, as plain data to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab05_profiling.step_patterns import PATTERNS
from edl_labs.virtual import VirtualMachine
from edl_labs.virtual.loop import step_spans

Step = list[dict[str, Any]]


def draw_machine(rng: Any) -> dict[str, Any]:
    """Parameters of a machine whose host costs differ from draw to draw, in whole nanoseconds."""
    launch_ns = int(rng.integers(4_000, 8_001))
    return {
        "launch_overhead_s": launch_ns / 1e9,
        "copy_overhead_s": round(1.3 * launch_ns) / 1e9,
        "sync_overhead_s": round(0.6 * launch_ns) / 1e9,
        "copy_latency_s": 1.2e-6,
        "link_byte_per_s": float(rng.integers(12, 50)) * 1e9,
        "pageable_byte_per_s": float(rng.integers(4, 9)) * 1e9,
    }


_LINE_BEHIND = 999  # a line that no drawn script reaches
EACH = 3  # timelines of each pattern, all but the first mixed with others


@case_source("name_the_pattern")
def patterns(rng: Any) -> list[Case]:
    # The pattern itself is not part of a case: cases travel to the student's process.
    drawn = []
    for pattern in PATTERNS:
        for number in range(EACH):
            machine = draw_machine(rng)
            drawn.append(_spans(draw_step(rng, pattern, machine, mixed=number > 0), machine))
    for draw in (draw_spread, draw_blocked):
        machine = draw_machine(rng)
        drawn.append(_spans(draw(rng, machine), machine))
    drawn[0] = _with_a_second_stream(drawn[0])
    return [Case(given={"spans": drawn[i]}) for i in rng.permutation(len(drawn))]


@case_source("blame")
def blamed(rng: Any) -> list[Case]:
    cases: list[dict[str, Any]] = []
    for pattern in [*PATTERNS, *PATTERNS]:
        machine = draw_machine(rng)
        cases.append({"pattern": pattern, "spans": _spans(draw_blamed(rng, pattern, machine), machine)})
    of_gpu = cases[PATTERNS.index("gpu")]
    of_gpu["spans"] = _with_a_second_stream(of_gpu["spans"])
    mixed = [cases[i] for i in rng.permutation(len(cases))]
    machine = draw_machine(rng)
    twice = {"pattern": "synchronisation", "spans": _spans(draw_waits_twice(rng, machine), machine)}
    return [Case(given=one) for one in (*mixed, twice)]


@case_source("most_to_gain")
def steps(rng: Any) -> list[Case]:
    steps = [(pattern, True) for pattern in PATTERNS] + [("synchronisation", False), ("copy", False)]
    cases = []
    for pattern, mixed in steps:
        machine = draw_machine(rng)
        cases.append({"step": draw_step(rng, pattern, machine, mixed=mixed), "machine": machine})
    for draw in (draw_surprise, draw_two_waits, draw_python_around):
        machine = draw_machine(rng)
        cases.append({"step": draw(rng, machine), "machine": machine})
    return [Case(given=cases[i]) for i in rng.permutation(len(cases))]


def _spans(step: Any, machine: dict[str, Any]) -> list[dict[str, Any]]:
    return step_spans(step, VirtualMachine(**machine), count=1)


def _with_a_second_stream(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The spans, and beside each kernel one of a second stream that begins later; all have one line."""
    twins, stops = [], _stops(spans)
    for number, kernel in enumerate(span for span in spans if span["kind"] == "kernel"):
        tenth_s = 0.1 * (kernel["end_s"] - kernel["start_s"])
        later_s, earlier_s = min(kernel["end_s"] + tenth_s, stops[kernel["end_s"]]), kernel["end_s"] - tenth_s
        times = {"start_s": kernel["start_s"] + tenth_s, "end_s": later_s if number % 2 else earlier_s}
        line = f"{kernel['line'].partition(':')[0]}:{_LINE_BEHIND}"
        twins.append({**kernel, "row": "stream 1", "name": "beside", "line": line, **times})
    return [*spans, *twins]


def _stops(spans: list[dict[str, Any]]) -> dict[float, float]:
    """For each end of a kernel, when the kernels that follow without a gap are over."""
    kernels = sorted((s for s in spans if s["kind"] == "kernel"), key=lambda s: s["start_s"], reverse=True)
    stops: dict[float, float] = {}
    for kernel in kernels:
        follows = next((k for k in kernels if k["start_s"] == kernel["end_s"]), None)
        stops[kernel["end_s"]] = stops[follows["end_s"]] if follows else kernel["end_s"]
    return stops


class Draw:
    """Durations in units of the launch cost, with a name and a line for each operation."""

    def __init__(self, rng: Any, machine: dict[str, Any]) -> None:
        self.rng, self.machine = rng, machine
        self._launch_s = machine["launch_overhead_s"]
        self._line = int(rng.integers(8, 120))
        self._file = str(rng.choice(["train.py", "main.py", "loop.py", "fit.py"]))

    def new_line(self) -> str:
        """A line further down the script."""
        self._line += int(self.rng.integers(1, 6))
        return f"{self._file}:{self._line}"

    def seconds(self, low: float, high: float) -> float:
        """A duration between `low` and `high` launches, in whole nanoseconds."""
        return round(1e9 * self._launch_s * float(self.rng.uniform(low, high))) / 1e9

    def load(self, low: float, high: float) -> Step:
        """The host gets a batch."""
        return [{"op": "load", "duration_s": self.seconds(low, high), "line": self.new_line()}]

    def python(self, low: float, high: float) -> Step:
        """The host does something else."""
        return [{"op": "python", "duration_s": self.seconds(low, high), "line": self.new_line()}]

    def item(self) -> Step:
        """The host reads a number."""
        return [{"op": "item", "line": self.new_line()}]

    def sync(self) -> Step:
        """The host waits for the device."""
        return [{"op": "sync", "line": self.new_line()}]

    def copy(self, low: float, high: float, *, pinned: bool = True, stream: int = 0) -> Step:
        """A copy that lasts between `low` and `high` launches."""
        rate = self.machine["link_byte_per_s" if pinned else "pageable_byte_per_s"]
        nbytes = int(self.seconds(low, high) * rate) // 512 * 512 + 512
        return [{"op": "copy", "nbytes": nbytes, "pinned": pinned, "stream": stream, "line": self.new_line()}]

    def kernels(self, count: int, low: float, high: float, *, gap: tuple[float, float] | None = None) -> Step:
        """`count` launches of one line, with Python before each where there is a gap."""
        line, name = self.new_line(), str(self.rng.choice(["gemm", "conv", "norm", "gelu", "softmax", "update"]))
        step: Step = []
        for _ in range(count):
            if gap:
                step.append({"op": "python", "duration_s": self.seconds(*gap), "line": line})
            step.append({"op": "launch", "name": name, "duration_s": self.seconds(low, high), "line": line})
        return step

    def count(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        return int(self.rng.integers(low, high + 1))


def draw_step(rng: Any, pattern: str, machine: dict[str, Any], *, mixed: bool) -> Step:
    """A step in which `pattern` has the largest share; `mixed` adds a second one, less than two thirds as large."""
    return _STEPS[pattern](Draw(rng, machine), mixed)


def draw_blamed(rng: Any, pattern: str, machine: dict[str, Any]) -> Step:
    """A step in which one line is to blame for `pattern`, at any place, and another one looks worse."""
    return _BLAMED[pattern](Draw(rng, machine))


def draw_waits_twice(rng: Any, machine: dict[str, Any]) -> Step:
    """A step in which one line waits twice and is to blame; another one has the longest gap, a short one, and less."""
    draw = Draw(rng, machine)
    lines = [draw.new_line() for _ in range(3)]

    def part(line: str, behind: tuple[float, float]) -> Step:
        wait = {"op": str(rng.choice(["item", "sync"])), "line": line}
        return [*draw.kernels(2, 5, 9), wait, *draw.python(*behind)]

    gaps = ((9, 10), (9, 10), (12.5, 14), (0.5, 1), (3, 6))
    lines = [lines[i] for i in rng.permutation(3)]
    return _shuffled(draw, [partial(part, lines[place], gap) for place, gap in zip((0, 0, 1, 1, 2), gaps, strict=True)])


def draw_surprise(rng: Any, machine: dict[str, Any]) -> Step:
    """A step in which synchronisation has the largest share, and a smaller one is worth more."""
    draw = Draw(rng, machine)
    return draw.load(13, 15) + draw.kernels(3, 2.4, 3.0) + draw.item() + draw.python(17, 20)


def draw_two_waits(rng: Any, machine: dict[str, Any]) -> Step:
    """A step whose long wait costs nothing: the next launch comes at once. Behind the short ones comes Python."""
    draw = Draw(rng, machine)
    long_wait = draw.kernels(3, 9, 12) + draw.sync() + draw.kernels(2, 2, 4)
    return long_wait + draw.item() + draw.python(12, 18) + draw.kernels(3, 2, 4) + draw.item() + draw.python(3, 5)


def draw_python_around(rng: Any, machine: dict[str, Any]) -> Step:
    """A step of short kernels with Python before, between and behind the launches of each row."""
    draw = Draw(rng, machine)
    first = draw.python(2, 4) + draw.kernels(3, 0.2, 0.5, gap=(0.4, 1.2)) + draw.python(3, 5) + draw.item()
    return first + draw.python(2, 4) + draw.kernels(3, 0.2, 0.5, gap=(0.4, 1.2)) + draw.python(3, 5)


def _gpu(draw: Draw, mixed: bool) -> Step:
    forward, backward = draw.kernels(draw.count(2, 4), 6, 14), draw.kernels(draw.count(2, 3), 10, 16)
    if mixed:
        return draw.load(12, 18) + draw.copy(1, 3) + forward + backward + draw.item()
    return draw.load(2, 12) + draw.copy(1, 4) + forward + backward


def draw_spread(rng: Any, machine: dict[str, Any]) -> Step:
    """A step of kernels on several lines, each of which has less than the load; a copy overlaps them."""
    draw = Draw(rng, machine)
    step = draw.load(40, 46) + draw.kernels(2, 7, 9) + draw.copy(6, 9, stream=1)
    for _ in range(3):
        step = step + draw.kernels(2, 7, 9)
    return step + draw.item()


def draw_blocked(rng: Any, machine: dict[str, Any]) -> Step:
    """A step in which the host waits for a pageable copy and then has other things to do."""
    draw = Draw(rng, machine)
    return draw.load(0.2, 2) + draw.copy(40, 60, pinned=False) + draw.python(12, 18) + draw.kernels(3, 2, 4)


def _launch(draw: Draw, mixed: bool) -> Step:
    first = draw.kernels(draw.count(4, 6), 0.1, 0.3, gap=(0.2, 0.8))
    second = draw.kernels(draw.count(5, 7), 0.1, 0.4, gap=(0.4, 1.2))
    return (draw.load(3.5, 5.5) if mixed else draw.load(0.1, 0.5)) + first + second


def _synchronisation(draw: Draw, mixed: bool) -> Step:
    step = draw.copy(6, 10) if mixed else draw.load(0.2, 1.0)
    for _ in range(draw.count(3, 4)):
        wait = draw.item() if draw.rng.random() < 0.7 else draw.sync()
        step = step + draw.kernels(draw.count(1, 2), 1.5, 3) + wait + draw.python(9, 14)
    return step


def _data(draw: Draw, mixed: bool) -> Step:
    step = draw.load(60, 100) + draw.copy(2, 4)
    if mixed:
        return step + draw.kernels(3, 3, 6) + draw.item() + draw.python(10, 16) + draw.kernels(2, 3, 6)
    return step + draw.kernels(draw.count(3, 6), 2, 5)


def _copy(draw: Draw, mixed: bool) -> Step:
    pinned = bool(draw.rng.random() < 0.5)
    step = (draw.load(14, 20) if mixed else draw.load(0.2, 2)) + draw.copy(40, 60, pinned=pinned)
    return step + draw.kernels(draw.count(3, 5), 2, 4) + (draw.item() if mixed else [])


# Levels of length, in launches, a third or more apart: a wait, load or copy of one is never taken for one of another.
_LEVELS = ((30, 34), (20, 23), (13.5, 15), (9, 10))
_COUNTS = ((14, 15), (10, 10), (7, 7), (5, 5))  # launches of a line; of those that cost, all but the first do
# Kernels of a line: how many, how many where the line is to blame, and how long each is. The longest one and the most
# are never to blame; a line that is has 25 or more, all others 18 at most.
_KERNELS = ((1, 1, (15, 17)), (1, 3, (8.5, 10)), (4, 7, (3.6, 4.2)), (8, 14, (1.8, 2.0)), (16, 16, (1.0, 1.1)))
_WAITED = ((3, 18, 20), (2, 12, 13.5), (2, 7, 8), (1, 8, 9))  # kernels before a wait, and how long each is


def _shuffled(draw: Draw, parts: Sequence[Callable[[], Step]]) -> Step:
    """The parts of a step in any order, with lines that go down the script."""
    return [operation for i in draw.rng.permutation(len(parts)) for operation in parts[i]()]


def _guilty(draw: Draw) -> int:
    """Which level is to blame: never the longest, each other one equally often."""
    return draw.count(1, 3)


def _exposed(draw: Draw, guilty: int) -> list[bool]:
    """Which levels cost the step something: the guilty one, and shorter ones or not."""
    return [level == guilty or (level > guilty and bool(draw.rng.random() < 0.5)) for level in range(len(_LEVELS))]


def _blamed_gpu(draw: Draw) -> Step:
    guilty = _guilty(draw)
    parts = [
        partial(draw.kernels, more if level == guilty else few, *lasts)
        for level, (few, more, lasts) in enumerate(_KERNELS)
    ]
    return draw.load(1, 3) + draw.copy(1, 2) + _shuffled(draw, parts)


def _blamed_launch(draw: Draw) -> Step:
    # What costs nothing has the same kernels and as much Python, beside a kernel that lasts longer than all of it.
    def part(count: int, exposed: bool) -> Step:
        waited = draw.item() if not exposed else []
        before = waited + draw.kernels(1, 2.3 * count, 2.5 * count) + (draw.item() if exposed else [])
        return before + draw.kernels(count, 0.1, 0.2, gap=(0.8, 1.2)) + draw.item()

    costs = _exposed(draw, _guilty(draw))
    return _shuffled(draw, [partial(part, draw.count(*_COUNTS[i]), costs[i]) for i in range(len(_COUNTS))])


def _blamed_synchronisation(draw: Draw) -> Step:
    # A wait is as long as the kernels before it, and costs what comes behind it.
    guilty = _guilty(draw)

    def part(level: int) -> Step:
        waited = draw.kernels(*_WAITED[level])
        wait = draw.item() if draw.rng.random() < 0.5 else draw.sync()
        if not level:
            return waited + draw.python(20, 24) + wait  # the most Python, which costs nothing
        return waited + wait + (draw.python(14, 18) if level == guilty else draw.python(2, 8))

    return _shuffled(draw, [partial(part, level) for level in range(len(_WAITED))])


def _blamed_data(draw: Draw) -> Step:
    # A load behind launches runs beside their kernels, one before them when everything is done.
    def part(level: int, exposed: bool) -> Step:
        if exposed:
            return draw.load(*_LEVELS[level]) + draw.kernels(2, 3, 5) + draw.item()
        return draw.kernels(4, 12, 14) + draw.load(*_LEVELS[level]) + draw.item()

    # A window begins with a kernel: with a first load that kernels wait for, it would show that load as the last.
    first = draw.kernels(1, 2, 3) + draw.item()
    return first + _shuffled(draw, [partial(part, *level) for level in enumerate(_exposed(draw, _guilty(draw)))])


def _blamed_copy(draw: Draw) -> Step:
    # A copy with a stream of its own runs beside the kernels.
    def part(level: int, exposed: bool) -> Step:
        if exposed:
            return draw.copy(*_LEVELS[level]) + draw.kernels(2, 3, 5) + draw.item()
        return draw.kernels(4, 12, 14) + draw.copy(*_LEVELS[level], stream=1) + draw.item()

    return _shuffled(draw, [partial(part, *level) for level in enumerate(_exposed(draw, _guilty(draw)))])


_STEPS: dict[str, Callable[[Draw, bool], Step]] = {
    "gpu": _gpu,
    "launch": _launch,
    "synchronisation": _synchronisation,
    "data": _data,
    "copy": _copy,
}
_BLAMED: dict[str, Callable[[Draw], Step]] = {
    "gpu": _blamed_gpu,
    "launch": _blamed_launch,
    "synchronisation": _blamed_synchronisation,
    "data": _blamed_data,
    "copy": _blamed_copy,
}
