"""Library functions that answer an exercise behind an adapter of three lines, found by machine.

What is tried of each public function: the exercise's arguments and the entries of those that are dicts or short lists,
by name where names agree, in any order where they do not, and put into a dataclass that a parameter asks for; of what
comes back, the whole, one attribute, one item, or a list of them. Values are never renamed or computed with. First the
solution's own calls are recorded, case by case; a function is called with the first of them, and only what gives what
the solution gave is tried with the others. All exercises of a lab share one pass over the library.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import inspect
import itertools
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import typing
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from edl_labs.checks import plain_data
from edl_labs.checks.evidence_form import Misfit, plain_lists
from edl_labs.course.lab.arranged_arguments import BUDGET, arranged, readings, same
from edl_labs.errors import EdlError, PlainDataError

MAX_CALLS = 12  # of the solution, with which what agreed once must agree again
_CALL_S = 0.25  # of one call: what measures the machine takes longer, and is no answer
_FUNCTION_CPU_S = 2  # for one library function in all its places; the slowest of the labs' take a tenth
_FUNCTION_S = 20.0  # until one that computes nothing and cannot be interrupted is left out
_LIMIT_S = 240.0  # of all of it, on a machine that others use too
_BYTES = 256 << 20  # beyond what is there before: whoever multiplies a list by a batch fails at once, not in seconds
Asked = dict[str, list[str]]
Found = dict[str, list[list[str]]]


def adapters(
    sources: list[tuple[str, str]],
    asked: Asked,
    cases: Mapping[str, list[Any]],
    paths: list[str],
    *,
    exercises_folder: Path | None = None,
) -> tuple[Found, dict[str, int]]:
    """`[path, code]` of each adapter by the function that it answers, and the first case that asks for a function.

    `sources` are the solution's cells, `asked` the functions of each exercise, `paths` what is tried.
    """
    request = {"run": [list(one) for one in sources], "asked": asked, "cases": dict(cases), "paths": paths}
    env = dict(os.environ, PYTHONWARNINGS="ignore", MPLBACKEND="agg")
    if exercises_folder is not None:
        env["EDL_LABS_EXERCISES"] = str(exercises_folder)
    command = [sys.executable, "-m", "edl_labs.course.lab.adapted_calls"]
    with tempfile.TemporaryDirectory() as home:
        # What a library function remembers or writes goes with the folder.
        env |= {"HOME": home, "XDG_CACHE_HOME": home, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            done = subprocess.run(
                command, input=plain_data.encode(request), capture_output=True, env=env, cwd=home, timeout=2 * _LIMIT_S
            )
        except subprocess.TimeoutExpired:
            raise _tried_in_part(f"the process that tries them was not done after {2 * _LIMIT_S:.0f} s") from None
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise EdlError("library functions could not be tried as answers", why=why, next="run that lab's solution")
    answer = plain_data.decode(done.stdout)
    if answer["untried"]:
        raise _tried_in_part(f"{answer['untried']} of {len(paths)} were left after {_LIMIT_S:.0f} s")
    return answer["found"], answer["first"]


def _tried_in_part(why: str) -> EdlError:
    return EdlError(
        "library functions were tried behind adapters in part only, so nothing is proved",
        why=why,
        next="run it again on a machine that has less to do",
    )


@dataclasses.dataclass
class _Recorded:
    """Calls of one function of the solution: arguments by name, and what came back."""

    signature: str
    calls: list[tuple[dict[str, Any], Any]] = dataclasses.field(default_factory=list)
    first_case: int = 0
    opaque: bool = False


def recorded(exercise: Any, names: list[str], namespace: dict[str, Any], cases: list[Any]) -> dict[str, _Recorded]:
    """What the solution's functions were called with and returned while an exercise was asked its cases."""
    from edl_labs.checks.evidence import collect

    found = {name: _Recorded(str(inspect.signature(namespace[name]))) for name in names}
    for index, case in enumerate(cases):
        watched = {name: _watched(namespace[name], found[name], index) for name in names}
        collect(exercise, {**namespace, **watched}, [case])
    return {name: one for name, one in found.items() if one.calls or one.opaque}


def _watched(function: Any, record: _Recorded, index: int) -> Callable[..., Any]:
    signature = inspect.signature(function)

    def watched(*given: Any, **named: Any) -> Any:
        if not record.calls and not record.opaque:
            record.first_case = index
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        try:
            plain_data.encode(dict(bound.arguments), max_bytes=1 << 20)
            before = copy.deepcopy(dict(bound.arguments))
        except Exception:
            record.opaque = True
            return function(*given, **named)
        result = function(*given, **named)
        if len(record.calls) < MAX_CALLS:
            with contextlib.suppress(PlainDataError, Misfit):
                record.calls.append((before, plain_lists(plain_data.plain_copy(result))))
        return result

    return watched


class _TooLong(BaseException):
    pass


def _timed(call: Callable[[], Any]) -> Any:
    """What a call gives; any exception, of ours where it computes too long (on a busy machine no sooner)."""

    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _CALL_S)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@lru_cache(maxsize=50_000)
def _code(text: str) -> Any:
    return compile(text, "<adapter>", "eval")


@dataclasses.dataclass
class _Candidate:
    """A library function, with what its signature says; `late` counts the calls that took too long."""

    path: str
    function: Any
    signature: inspect.Signature
    hints: dict[str, Any]
    late: int = 0

    @classmethod
    def of(cls, path: str) -> _Candidate | None:
        module, _, name = path.rpartition(".")
        try:
            function = getattr(importlib.import_module(module), name)
            signature = inspect.signature(function)
        except (ImportError, AttributeError, TypeError, ValueError):
            return None
        try:
            hints = typing.get_type_hints(vars(function)["__init__"] if isinstance(function, type) else function)
        except Exception:
            hints = {}
        return cls(path, function, signature, hints)

    @property
    def made(self) -> dict[str, type]:
        return {hint.__qualname__: hint for hint in self.hints.values() if isinstance(hint, type)}

    def adapter(self, name: str, record: _Recorded) -> str | None:
        """Code that defines `name` by a call of this function, right for all that was recorded; None without one."""
        # An answer like 0 or True is met by chance; one with more to it tells more at the first call.
        (first, want), *others = sorted(record.calls, key=lambda call: -len(repr(call[1])))
        given, tried = copy.deepcopy(first), dict[str, None]()
        for text in itertools.islice(arranged(self.signature, self.hints, given), 4 * BUDGET):
            if text in tried or self.late > 1:
                continue
            tried[text] = None
            if len(tried) > BUDGET:
                return None
            for way in self._ways(text, given, want):
                if all(self._agrees(text, way, call) for call in others):
                    return self._cell(name, record.signature, text, way)
        return None

    def _ways(self, text: str, given: dict[str, Any], want: Any) -> list[str]:
        try:
            return list(_timed(lambda: list(readings(self._called(text, given), want))))
        except _TooLong:
            self.late += 1
        except BaseException:  # whatever a function does with arguments that it was never meant for
            pass
        return []

    def _called(self, text: str, given: dict[str, Any]) -> Any:
        return eval(_code(f"f({text})"), {**given, "f": self.function, "_made": self.made})

    def _agrees(self, text: str, way: str, call: tuple[dict[str, Any], Any]) -> bool:
        given, want = call
        try:
            found = _timed(lambda: self._called(text, copy.deepcopy(given)))
            return same(_timed(lambda: eval(_code(way), {"found": found})), want)
        except BaseException:
            return False

    def _cell(self, name: str, signature: str, text: str, way: str) -> str:
        module, _, own = self.path.rpartition(".")
        lines = [f"from {module} import {own} as _asked"]
        for made, kind in self.made.items():
            if f"_made[{made!r}]" in text:
                lines.append(f"from {kind.__module__} import {made}")
                text = text.replace(f"_made[{made!r}]", made)
        return "\n".join([*lines, f"def {name}{signature}:", f"    found = _asked({text})", f"    return {way}", ""])


def _search(paths: list[str], records: Mapping[str, _Recorded]) -> tuple[Found, int]:
    """Adapters for each recorded function, from a process that is replaced when one of them stalls or ends it.

    With it comes how many paths were left when the time was up.
    """
    found: Found = {name: [] for name in records}
    start, end_s = 0, time.monotonic() + _LIMIT_S
    while start < len(paths) and time.monotonic() < end_s:
        start = _searched_from(start, paths, records, found, end_s=end_s)
    return found, max(0, len(paths) - start)


def _searched_from(
    start: int, paths: list[str], records: Mapping[str, _Recorded], found: Found, *, end_s: float
) -> int:
    """Where to go on: behind the function at which the forked process ended, or was ended at `end_s`."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setsid()  # loaders that a function starts are of its group, and end with it
            with os.fdopen(writing, "w") as pipe:
                _try_each(start, paths, records, pipe)
        finally:
            os._exit(0)
    os.close(writing)
    at, text = start, b""
    ended = os.pidfd_open(child) if hasattr(os, "pidfd_open") else reading  # what it started may hold its pipe
    try:
        while reading in select.select([reading, ended], [], [], _FUNCTION_S)[0]:
            if not (piece := os.read(reading, 1 << 16)):
                break
            *lines, text = (text + piece).split(b"\n")
            for line in map(json.loads, lines):
                at = line["at"]
                if "name" in line:
                    found[line["name"]].append([paths[at], line["code"]])
            if time.monotonic() > end_s:
                return at
    finally:
        for handle in {reading, ended}:
            os.close(handle)
        for end in (os.killpg, os.kill):  # the group is not there before the child's first line
            with contextlib.suppress(ProcessLookupError):
                end(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return at + 1


def _try_each(start: int, paths: list[str], records: Mapping[str, _Recorded], pipe: IO[str]) -> None:
    import resource  # of POSIX alone, as is this process; who starts it may be elsewhere

    status = Path("/proc/self/status").read_text(encoding="utf-8")
    most = 1024 * int(status.partition("VmData:")[2].split()[0]) + _BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # a fork has none of the threads that its parent's pool had
    for at in range(start, len(paths)):
        limit_s = math.ceil(time.process_time()) + _FUNCTION_CPU_S
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.RLIM_INFINITY))
        print(json.dumps({"at": at}), file=pipe, flush=True)
        candidate = _Candidate.of(paths[at])
        for name, record in records.items():
            code = None if candidate is None else candidate.adapter(name, record)
            if code is not None:
                print(json.dumps({"at": at, "name": name, "code": code}), file=pipe, flush=True)


def _serve() -> None:
    """The process: one request in, one answer out; what anything prints goes nowhere."""
    from edl_labs.checks.lab_exercises import find

    request = plain_data.decode(sys.stdin.buffer.read())
    answers, null = os.fdopen(os.dup(1), "wb"), os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for label, code in request["run"]:
        exec(compile(code, f"<{label}>", "exec"), namespace)
    records: dict[str, _Recorded] = {}
    for name, functions in request["asked"].items():
        records |= recorded(find(name), functions, namespace, request["cases"][name])
    for path in request["paths"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(path.rpartition(".")[0])
    found, untried = _search(request["paths"], {name: one for name, one in records.items() if one.calls})
    first = {name: one.first_case for name, one in records.items()}
    with answers:
        answers.write(plain_data.encode({"found": found, "first": first, "untried": untried}))
        answers.flush()
    os._exit(0)  # threads of a student's kind may still run


if __name__ == "__main__":
    _serve()
