"""The judgement in a process of its own: what students' evidence does to memory or time is done to that process.

Evidence is decoded and compared there, under limits; one that kills or stalls the judge scores nothing and the next is
judged by a new one. Secret cases are drawn in such a process, too: it has the exercises imported anyway, and the
caller's own threads go on meanwhile.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, MutableMapping
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import IO, Any

from edl_labs.checks import Exercise, Outcome, plain_data
from edl_labs.checks._judge import INCOMPARABLE
from edl_labs.course.grade.known_sentences import withheld, without_texts
from edl_labs.course.sandbox.gauges import process_cpu_s
from edl_labs.course.sandbox.kernel.spawned import OUTER_BOUND, Allowance, Taken
from edl_labs.course.sandbox.limits import DEFAULTS, Limits
from edl_labs.device import usable_cores
from edl_labs.errors import EdlError

_DRAW_S = 600.0  # drawing takes up to a second of computing, and is our own code
_START_S = 60.0  # importing numpy and the library takes seconds where several judges start at once
_LOOK_S = 0.05  # between two looks at what a process that is late has computed
_GONE_S = 5.0  # from the end of its line to the end of a process
_NO_MEMORY = 77  # the exit code that says so; Python's own are 0 to 2 and 120
_SELDOM = 50_000  # new objects between two looks for garbage; with 700, torch takes twice as long to import
_DRAWN, _REFUSED = b"+", b"-"  # before cases, and before the error that came instead
_TEXT_LETTERS = 4000  # above a screen; a traceback of a hostile depth is longer


@dataclass(frozen=True)
class Judged:
    """An outcome, and whether the evidence had a value for each case: no exception, no missing name, no stub."""

    outcome: Outcome
    all_values: bool


class Judge:
    """Judges evidence. Start it with `with`; one judge serves one thread.

    Its process imports the exercises of `lab` as it starts, beside what the caller does; any others when they come.
    `known` holds what was judged before, for judges to share: of the same evidence for the same cases nothing else
    can come.
    """

    def __init__(
        self, limits: Limits = DEFAULTS, *, lab: str = "", known: MutableMapping[bytes, Judged] | None = None
    ) -> None:
        self._limits, self._lab = limits, lab
        self._known: MutableMapping[bytes, Judged] = {} if known is None else known
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False  # whether the process has said that it is
        self.all_values = True
        """Whether the evidence judged last has a value for each case: no exception, no missing name, no stub."""
        self.cpu_s = 0.0
        """CPU seconds spent on decoding and comparing so far, without its process's start."""

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def launch(self) -> None:
        """Let its process start, which takes half a second, beside what the caller does meanwhile."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "edl_labs.course.grade.judge_process", str(self._limits.judge_bytes), self._lab],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )

    def close(self) -> None:
        """End the process."""
        self._ready = False
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process = None

    def judge(self, exercise: Exercise, cases: bytes, evidence: bytes, wants: bytes, *, points: float) -> Outcome:
        """The outcome of encoded evidence against the reference's. EdlError only when the judge cannot work at all."""
        head = plain_data.encode({"lab": exercise.lab, "name": exercise.name, "points": float(points)})
        parts = [head, cases, evidence, wants]
        key = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
        found = self._known.get(key)
        if found is None:
            found = self._judged(exercise, parts, points)
            # What ran when is large, and kept where it belongs; what took too long or too much may not the next time.
            if found.all_values and not found.outcome.timelines and found.outcome.what != INCOMPARABLE:
                self._known[key] = found
        self.all_values = found.all_values
        return found.outcome

    def _judged(self, exercise: Exercise, parts: list[bytes], points: float) -> Judged:
        try:
            answer = dict(plain_data.decode(self._ask(parts, own_s=self._limits.judge_s)))
        except TimeoutError as error:
            self.close()
            return Judged(unjudged(exercise, points, why=str(error)), all_values=False)
        except (OSError, EOFError):
            why = f"comparing it {ending(self._process)}"
            self.close()
            return Judged(unjudged(exercise, points, why=why), all_values=False)
        if "broken" in answer:
            raise EdlError(f"the judge of {exercise.name} failed", why=answer["broken"], next="edl-labs test")
        return Judged(Outcome(**answer["outcome"]), bool(answer["all_values"]))

    def draw(self, exercise: Exercise, seed: int) -> bytes:
        """The cases that `exercise` draws from `seed`, encoded. Raises what drawing them raises."""
        asked = plain_data.encode({"lab": exercise.lab, "name": exercise.name, "seed": seed})
        try:
            answer = self._ask([asked], own_s=_DRAW_S)
        except (TimeoutError, OSError, EOFError) as error:
            why = "it took too long" if isinstance(error, TimeoutError) else f"its process {ending(self._process)}"
            self.close()
            raise EdlError(f"no cases of {exercise.name} were drawn", why=why, next="grade again") from None
        if answer[:1] == _REFUSED:
            raise EdlError(**plain_data.decode(answer[1:]))
        return answer[1:]

    def _ask(self, parts: list[bytes], *, own_s: float) -> bytes:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        time_left, before_s = ComputingTime(process.pid, own_s), process_cpu_s(process.pid)
        try:
            for part in parts:
                send(process.stdin, part)
            return received(process.stdout, time_left)
        finally:
            self.cpu_s += max(0.0, process_cpu_s(process.pid) - before_s)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._ready and self._process is not None and self._process.poll() is None:
            return self._process
        if self._ready:
            self.close()
        self.launch()
        process = self._process
        assert process is not None
        assert process.stdout is not None
        try:
            received(process.stdout, ComputingTime(process.pid, _START_S))
        except (EOFError, TimeoutError) as error:
            cause = "took too long" if isinstance(error, TimeoutError) else ending(process)
            self.close()
            why = f"starting it {cause}: this machine has too little memory or time now; no answer was judged"
            then = "the same command again, with fewer at once: -j 1"
            raise EdlError("the judge did not start", why=why, next=then) from None
        self._ready = True
        return process


class FreeJudge:
    """Judges with whichever process of `free` is free, the one that was last first; with a new one where none is.

    One serves one thread. Threads that share `free` have as many processes as ever judged at a time, and each has
    imported what it compares with once.
    """

    def __init__(self, free: list[Judge], new: Callable[[], Judge]) -> None:
        self._free, self._new = free, new
        self.all_values, self.cpu_s = True, 0.0
        """As those of `Judge`, for what was judged here."""

    def judge(self, exercise: Exercise, cases: bytes, evidence: bytes, wants: bytes, *, points: float) -> Outcome:
        """What `Judge.judge` says."""
        try:
            judge = self._free.pop()
        except IndexError:
            judge = self._new()
        before_s = judge.cpu_s
        try:
            outcome = judge.judge(exercise, cases, evidence, wants, points=points)
            self.all_values = judge.all_values
        finally:
            self.cpu_s += judge.cpu_s - before_s
            self._free.append(judge)
        return outcome


class ComputingTime:
    """Seconds left of the `own_s` that a process of ours may compute from now on; called, it tells them.

    Comparing never sleeps: while such a process computes nothing, it waits for a core, or for memory, that others have.
    `OUTER_BOUND` times as long on the clock ends it all the same.
    """

    def __init__(self, pid: int, own_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._pid, self._clock = pid, clock
        self._allowance = Allowance(own_s, OUTER_BOUND * own_s, self._taken(), usable_cores())

    def __call__(self) -> float:
        """Seconds that are left, at least; 0 or less when the time is over."""
        passed_s = self._clock() - self._allowance.began.wall_s
        if passed_s < self._allowance.own_s:
            return self._allowance.own_s - passed_s
        return self._allowance.left_s(self._taken())

    def _taken(self) -> Taken:
        wall_s, cpu_s = self._clock(), process_cpu_s(self._pid)
        return Taken(wall_s, cpu_s, waited_s=wall_s - cpu_s)


def ending(process: subprocess.Popen[bytes] | None) -> str:
    """How a process of ours ended that no longer answers, from its status."""
    try:
        code = None if process is None else process.wait(_GONE_S)
    except subprocess.TimeoutExpired:
        code = None
    if code is None:
        return "closed the line to its process"
    if code == _NO_MEMORY:
        return "took too much memory"
    if code == -signal.SIGKILL:
        return "was killed (SIGKILL), as is done where a machine runs out of memory"
    if code < 0:
        return f"was ended by {_signal_name(-code)}"
    return f"ended its process with exit code {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_READABLE = "return the numbers, lists or arrays that the text above the cell asks for"


def unjudged(exercise: Exercise, points: float, *, why: str, what: str = "", then: str = _READABLE) -> Outcome:
    """The outcome of evidence that cannot be compared."""
    text = what or INCOMPARABLE
    return Outcome(
        exercise.name,
        exercise.lab,
        "wrong",
        0.0,
        points,
        what=text,
        why=why,
        next=then,
        trusting=exercise.trusting,
    )


def send(pipe: IO[bytes], message: bytes) -> None:
    """One message, its length before it."""
    pipe.write(len(message).to_bytes(8, "little"))
    pipe.write(message)
    pipe.flush()


def received(pipe: IO[bytes], left_s: Callable[[], float]) -> bytes:
    """One message while `left_s` tells that there is time, else TimeoutError; EOFError when the process is gone."""
    size = int.from_bytes(_exactly(pipe, 8, left_s), "little")
    return _exactly(pipe, size, left_s)


def _exactly(pipe: IO[bytes], size: int, left_s: Callable[[], float]) -> bytes:
    """`size` bytes while there is time, read past the pipe's buffer."""
    parts: list[bytes] = []
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while size > 0:
            while not ready.select(max(_LOOK_S, left_s())):
                if left_s() <= 0:
                    raise TimeoutError("comparing it took too long")
            piece = os.read(pipe.fileno(), min(size, 1 << 20))
            if not piece:
                raise EOFError("the process has ended")
            parts.append(piece)
            size -= len(piece)
    return b"".join(parts)


def _serve(memory_bytes: int, lab: str) -> None:
    """The process: four messages in (what, cases, evidence, wants) or one (what to draw), one out."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    gc.disable()  # what is imported stays, and looking for garbage takes a sixth of the time
    import numpy  # noqa: F401  (before the limit, which counts what is mapped)

    if lab:
        _imported(lab)
    gc.freeze()
    gc.set_threshold(_SELDOM)
    gc.enable()
    send(answers, b"ready")
    known: dict[bytes, Any] = {}
    limited = False
    while head := requests.read(8):
        what = plain_data.decode(requests.read(int.from_bytes(head, "little")))
        if "seed" in what:
            send(answers, _drawn(what))
            continue
        cases, evidence, wants = (requests.read(int.from_bytes(requests.read(8), "little")) for _ in range(3))
        if not limited and _imported(what["lab"]):
            import resource  # of POSIX alone, as is this process; who starts it may be elsewhere

            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
            limited = True
        try:
            send(answers, plain_data.encode(_judged(what, cases, evidence, wants, known)))
        except MemoryError:
            os._exit(_NO_MEMORY)


def _imported(lab: str) -> bool:
    from edl_labs.checks.lab_exercises import load_lab

    try:
        return bool(load_lab(lab))
    except Exception:
        return False


def _drawn(what: dict[str, Any]) -> bytes:
    from edl_labs.checks.lab_exercises import load_lab

    try:
        exercise = next(e for e in load_lab(what["lab"]) if e.name == what["name"])
        return _DRAWN + plain_data.encode(exercise.draw_cases(what["seed"]))
    except EdlError as error:
        return _REFUSED + plain_data.encode({"what": error.what, "why": error.why, "next": error.next})
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        return _REFUSED + plain_data.encode({"what": f"{what['name']}'s cases cannot be drawn", "why": why})


def _judged(what: dict[str, Any], cases: bytes, evidence: bytes, wants: bytes, known: dict[bytes, Any]) -> Any:
    from edl_labs.checks import judge
    from edl_labs.checks._judge import kept_timelines
    from edl_labs.checks.lab_exercises import load_lab

    try:
        exercise = next(e for e in load_lab(what["lab"]) if e.name == what["name"])
        drawn, right = (known.setdefault(text, plain_data.decode(text)) for text in (cases, wants))
    except Exception as error:
        return {"broken": f"{type(error).__name__}: {error}"}
    try:
        got = without_texts(plain_data.decode(evidence), exercise.lab)
    except EdlError as error:
        return {"outcome": _fields(unjudged(exercise, what["points"], why=error.what)), "all_values": False}
    outcome = judge(exercise, plain_data.plain_copy(drawn), got, plain_data.plain_copy(right), points=what["points"])
    if outcome.points:
        kept = kept_timelines(exercise, plain_data.plain_copy(drawn), got, plain_data.plain_copy(right))
        outcome = replace(outcome, timelines=kept)
    return {"outcome": _fields(outcome), "all_values": _has_values(got)}


def _has_values(records: Any) -> bool:
    return isinstance(records, list) and all(isinstance(one, dict) and "value" in one for one in records)


def _fields(outcome: Outcome) -> dict[str, Any]:
    """What leaves this process: nothing of a secret case does."""
    return asdict(cut_short(withheld(outcome)))


def cut_short(outcome: Outcome) -> Outcome:
    """The outcome, its texts cut to a length that people read and bytes can carry."""
    texts: dict[str, Any] = {key: value for key, value in vars(outcome).items() if type(value) is str}
    return replace(
        outcome, **{key: text[:_TEXT_LETTERS].encode("utf-8", "replace").decode() for key, text in texts.items()}
    )


def public(outcome: Outcome) -> Outcome:
    """The outcome as a student may read it: secret cases stay secret, so that the same seed can grade again."""
    return replace(outcome, case_text="", case_index=None, printed="", timelines={})


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
