"""Searches for library functions that answer an exercise if they are called through an adapter of three lines.

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
import math
import os
import signal
import sys
import tempfile
import time
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from edl_labs.checks import plain_data
from edl_labs.checks.evidence_form import Misfit, plain_lists
from edl_labs.checks.probe_process import run_cell
from edl_labs.checks.spec import Case, given_halves
from edl_labs.checks.worker import Worker, WorkerGone, wall_clock
from edl_labs.checks.worker_process import Server, limit_memory
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
    cases: Mapping[str, list[Case]],
    paths: list[str],
    *,
    exercises_folder: Path | None = None,
) -> tuple[Found, dict[str, int]]:
    """`[path, code]` of each adapter by the function that it answers, and the first case that asks for a function.

    `sources` are the solution's cells, `asked` the functions of each exercise, `paths` what is tried.
    """
    givens = {name: given_halves(drawn) for name, drawn in cases.items()}
    request = {"run": [list(one) for one in sources], "asked": asked, "givens": givens, "paths": paths}
    env = dict(os.environ, PYTHONWARNINGS="ignore", MPLBACKEND="agg")
    if exercises_folder is not None:
        env["EDL_LABS_EXERCISES"] = str(exercises_folder)
    with tempfile.TemporaryDirectory() as home:
        # What a library function remembers or writes goes with the folder.
        env |= {"HOME": home, "XDG_CACHE_HOME": home, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with contextlib.closing(
            Worker.start("edl_labs.course.lab.adapted_calls:searching", env=env, cwd=home)
        ) as origin:
            first = _asked(origin, request, _LIMIT_S)
            try:
                found, untried = _search(origin, paths, first["recorded"])
            except WorkerGone as gone:
                raise _tried_in_part(f"the process that tried them {gone.reason}") from None
    if untried:
        raise _tried_in_part(f"{untried} of {len(paths)} had not been tried after {_LIMIT_S:.0f} s")
    return found, first["first"]


def _asked(origin: Worker, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """What recording the solution's calls gives."""
    try:
        answer = dict(plain_data.decode(origin.ask(plain_data.encode(request), left_s=wall_clock(limit_s))))
    except WorkerGone as gone:
        if gone.late:
            raise _tried_in_part(f"the process that tries them was not ready after {limit_s:.0f} s") from None
        answer = {"failed": f"the process {gone.reason}"}
    if "failed" in answer:
        why = answer["failed"]
        raise EdlError(
            "library functions could not be tried as answers", why=why, next="check that this lab's solution runs"
        )
    return answer


def _tried_in_part(why: str) -> EdlError:
    return EdlError(
        "only some library functions were tried with adapters, so nothing is proved",
        why=why,
        next="run the test again on a machine that is less busy",
    )


@dataclasses.dataclass
class _Recorded:
    """Calls of one function of the solution: arguments by name, and what came back."""

    signature: str
    calls: list[tuple[dict[str, Any], Any]] = dataclasses.field(default_factory=list)
    first_case: int = 0
    opaque: bool = False


def recorded(exercise: Any, names: list[str], namespace: dict[str, Any], givens: list[Any]) -> dict[str, _Recorded]:
    """What the solution's functions were called with and returned while an exercise was asked its cases."""
    from edl_labs.checks.evidence import collect

    found = {name: _Recorded(str(inspect.signature(namespace[name]))) for name in names}
    for index, given in enumerate(givens):
        watched = {name: _watched(namespace[name], found[name], index) for name in names}
        collect(exercise, {**namespace, **watched}, [given])
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


def _search(origin: Worker, paths: list[str], names: Iterable[str]) -> tuple[Found, int]:
    """Adapters for each recorded function, from a fork that is replaced when a function stalls or ends it.

    With it comes how many paths were left when the time was up. WorkerGone where the origin of forks has ended.
    """
    found: Found = {name: [] for name in names}
    left_s, fork = wall_clock(_LIMIT_S), origin
    try:
        for at, path in enumerate(paths):
            if left_s() <= 0:
                return found, len(paths) - at
            if fork is origin or not fork.is_open:
                fork = origin.fork()
            with contextlib.suppress(WorkerGone):
                for name, code in plain_data.decode(fork.ask(path.encode(), left_s=wall_clock(_FUNCTION_S))):
                    found[name].append([path, code])
    finally:
        if fork is not origin:
            fork.close()
    return found, 0


def searching() -> Server:
    """What answers in the process."""
    return _Searcher()


class _Searcher:
    """Records the solution's calls, which is asked first; then, in forks, tries library functions one by one."""

    def __init__(self) -> None:
        self._records: dict[str, _Recorded] | None = None
        self._is_limited = False

    def __call__(self, parts: list[bytes]) -> bytes:
        if self._records is not None:
            return plain_data.encode(self._adapters(parts[0].decode(), self._records))
        try:
            found = _recorded_all(plain_data.decode(parts[0]))
        except Exception as error:
            return plain_data.encode({"failed": f"{type(error).__name__}: {error}"})
        self._records = {name: one for name, one in found.items() if one.calls}
        first = {name: one.first_case for name, one in found.items()}
        return plain_data.encode({"first": first, "recorded": list(self._records)})

    def _adapters(self, path: str, records: Mapping[str, _Recorded]) -> list[list[str]]:
        import resource  # of POSIX alone, as is this process; who starts it may be elsewhere

        if not self._is_limited:
            limit_memory(_BYTES, more=True)
            self._is_limited = True
        limit_s = math.ceil(time.process_time()) + _FUNCTION_CPU_S
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.RLIM_INFINITY))
        candidate = _Candidate.of(path)
        tried = {name: candidate and candidate.adapter(name, record) for name, record in records.items()}
        return [[name, code] for name, code in tried.items() if code]


def _recorded_all(request: dict[str, Any]) -> dict[str, _Recorded]:
    from edl_labs.checks.lab_exercises import find

    namespace: dict[str, Any] = {"__name__": "__main__"}
    for label, code in request["run"]:
        run_cell(label, code, namespace)
    records: dict[str, _Recorded] = {}
    for name, functions in request["asked"].items():
        records |= recorded(find(name), functions, namespace, request["givens"][name])
    for path in request["paths"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(path.rpartition(".")[0])
    return records
