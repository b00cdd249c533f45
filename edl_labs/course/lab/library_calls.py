"""Submits library functions as answers: none may earn a point, unless lab.toml allows it with a reason.

A submission of this kind is one line, `from X import f as name`, for a function or class that an exercise asks for, or
an adapter of at most three: what `adapted_calls` finds for functions of plain data, and for others, whose arguments
cannot be called with twice, the arguments in another order; for classes, the settings that both know.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice, permutations
from pathlib import Path
from typing import Any

from edl_labs.checks import RegisteredExercise, judge
from edl_labs.checks.probe_process import ProbeDied, ProbeProcess
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.adapted_calls import Found, adapters
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.errors import EdlError

# What others than edl_labs have for what the labs ask; all of math and statistics is tried beside them.
RIVALS = (
    *("torch.profiler.schedule", "torch.amp.GradScaler", "torch.amp.autocast", "torch.finfo", "torch.promote_types"),
    *("torch.nn.utils.rnn.pad_sequence", "torch.nn.utils.rnn.pack_sequence", "torch.utils.data.default_collate"),
    *("torch.utils.data.BatchSampler", "torch.utils.data.RandomSampler", "torch.utils.data.DataLoader"),
    *("torch.sum", "torch.cumsum", "torch.ceil", "torch.nextafter", "torch.quantile", "torch.argmax", "torch.allclose"),
    *("numpy.sum", "numpy.cumsum", "numpy.ceil", "numpy.spacing", "numpy.percentile", "numpy.argmax", "numpy.finfo"),
    *("numpy.interp", "numpy.searchsorted", "numpy.array_split", "numpy.bincount"),
    *("builtins.sum", "builtins.max", "builtins.min", "builtins.sorted", "builtins.len", "builtins.round"),
)
_WHOLE_MODULES = ("math", "statistics")
_NOT_STUDENTS = ("edl_labs.course", "edl_labs.cli")
_BATCH = 60  # candidates a fork: its start is shared, and one that hangs costs the others a second try
_BATCH_S, _ALONE_S = 8.0, 2.0  # of CPU: a wrong function ends at once, but for those that measure the machine
_NONE = "def {name}(*given, **named):\n    return None\n"
_ARRANGED = "{call}\ndef {name}(*given, **named):\n    return _asked({order})\n"
_KNOWN = (
    "{call}\ndef {name}(*given, **named):\n"
    "    return _asked(*given, **{{name: value for name, value in named.items() if name in {known}}})\n"
)
_MOST_ARRANGED = 600  # orders of arguments for each function that is asked for: ten batches


@dataclass(frozen=True)
class Earned:
    """What a library function earned in an exercise, in the place of the function `name`, behind an adapter if any."""

    path: str
    name: str
    points: float
    adapter: str = ""


@cache
def library_functions() -> Mapping[str, inspect.Signature | None]:
    """Every public function and class that students have, by its shortest path, with its signature where it has one."""
    import edl_labs

    found: dict[int, tuple[str, Any]] = {}
    for module in _modules(edl_labs):
        for name in sorted({*vars(module), *getattr(module, "__all__", ())}):  # facades load what they name when asked
            value = getattr(module, name, None)
            own = str(getattr(value, "__module__", "")).startswith("edl_labs.")
            if callable(value) and own and not name.startswith("_") and not _is_error(value):
                known = found.get(id(value))
                path = f"{module.__name__}.{name}"
                if known is None or _plainness(path) < _plainness(known[0]):
                    found[id(value)] = (path, value)
    listed = dict(found.values())
    for path in (
        *RIVALS,
        *(f"{m}.{n}" for m in _WHOLE_MODULES for n in _public(importlib.import_module(m))),
    ):
        module, _, name = path.rpartition(".")
        listed[path] = getattr(importlib.import_module(module), name, None)
    return {path: _signature(value) for path, value in sorted(listed.items()) if callable(value)}


@cache
def private_functions() -> Mapping[str, inspect.Signature | None]:
    """Every other function and class of the modules that students have, those of `exercises/` too, by its path."""
    import edl_labs

    public = {id(_named(path)) for path in library_functions()}
    found: dict[int, str] = {}
    for module in _modules(edl_labs):
        for name, value in vars(module).items():
            own = getattr(value, "__module__", "") == module.__name__
            if own and callable(value) and not _is_error(value) and id(value) not in public:
                found.setdefault(id(value), f"{module.__name__}.{name}")
    return {path: _signature(_named(path)) for path in sorted(found.values())}


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name, None)


def earned_by_library(
    course: Course,
    lab: Lab,
    exercises: Mapping[str, RegisteredExercise],
    cases: Mapping[tuple[str, int], list[Any]],
    wants: Mapping[tuple[str, int], list[Any]],
    progress: Callable[[str], None] = lambda name: None,
    *,
    adapted: bool = False,
) -> dict[str, list[Earned]]:
    """What each exercise gives for library functions, under every one of the seeds in `wants`.

    With the other functions of the solution, one earns only what exceeds the points of a function that returns None.
    With `adapted`, behind adapters too, private functions among them, which takes some minutes of CPU time a lab. What
    lab.toml allows is always tried behind them: it may earn there alone.
    """
    listed = {path for name in exercises for path in lab.exercise(name).library}
    behind = [path for path in library_functions() if adapted or path in listed]
    behind += private_functions() if adapted else ()
    some = {name: one for name, one in exercises.items() if adapted or lab.exercise(name).library}
    found_by_machine, first = _adapters(course, lab, some, cases, behind) if behind else ({}, {})
    with _Trials(course, lab, found_by_machine, first, behind) as trials:
        found = {}
        for name, exercise in exercises.items():
            seeds = [(cases[key], want) for key, want in wants.items() if key[0] == name]
            found[name] = list(trials.earned(exercise, seeds))
            progress(name)
    return found


def _adapters(
    course: Course,
    lab: Lab,
    exercises: Mapping[str, RegisteredExercise],
    cases: Mapping[tuple[str, int], list[Any]],
    paths: list[str],
) -> tuple[Found, dict[str, int]]:
    public = {name: next(drawn for key, drawn in cases.items() if key[0] == name) for name in exercises}
    few = {name: drawn[:1] if exercises[name].trains else drawn for name, drawn in public.items()}
    asked = {name: [node.name for node in asked_of(lab, name) if isinstance(node, ast.FunctionDef)] for name in few}
    return adapters(lab.namespace_cells(), asked, few, paths, exercises_folder=course.exercises)


class _Trials:
    """The process in which library functions stand in for the solution's, a batch in a fork."""

    def __init__(self, course: Course, lab: Lab, found: Found, first: Mapping[str, int], behind: list[str]) -> None:
        self.course, self.lab, self.found, self.first, self.behind = course, lab, found, first, behind
        self.worker: ProbeProcess | None = None
        self.slow: set[str] = set()
        is_private = set(behind) - library_functions().keys()
        self.private = (
            {path: one for path, one in private_functions().items() if path in is_private} if is_private else {}
        )

    def __enter__(self) -> _Trials:
        return self

    def __exit__(self, *_: object) -> None:
        if self.worker is not None:
            self.worker.__exit__()
            self.worker = None

    def earned(self, exercise: RegisteredExercise, seeds: list[tuple[list[Any], list[Any]]]) -> Iterator[Earned]:
        most = self.lab.exercise(exercise.name).weight
        for asked in asked_of(self.lab, exercise.name):
            cells = self._candidates(asked)
            at = self.first.get(asked.name, 0)  # the first case in which it is called at all
            answers = self._try(exercise, cells, seeds[0][0][at : at + 1])
            cells = {key: cell for key, cell in cells.items() if "value" in (answers[key] or [{}])[0]}
            nothing = ("", "")
            cells[nothing] = _NONE.format(name=asked.name)
            points = dict.fromkeys(cells, most)
            for cases, wants in seeds:
                answers = self._try(exercise, {key: cell for key, cell in cells.items() if points[key] > 0}, cases)
                for key, records in answers.items():
                    given = judge(exercise, cases, records, wants, points=most).points if records else 0.0
                    points[key] = min(points[key], given)
            for (path, adapter), given in points.items():
                if given > points[nothing]:
                    yield Earned(path, asked.name, given, adapter)

    def _candidates(self, asked: ast.FunctionDef | ast.ClassDef) -> dict[tuple[str, str], str]:
        """Cells by library function and adapter, which is empty where the function itself is handed in."""
        known = {**library_functions(), **self.private}
        cells = {(path, ""): _cell(path, asked.name) for path, signature in known.items() if fits(signature, asked)}
        found: list[tuple[str, str]] = []
        if isinstance(asked, ast.ClassDef):
            found = [(path, _with_known(path, known[path], asked)) for path in self.behind if path in known]
        elif asked.name in self.found:
            found = [(path, code) for path, code in self.found[asked.name]]
        else:
            direct = [path for path, _ in cells if path in self.behind]
            found = list(islice(_other_orders(direct, asked), _MOST_ARRANGED))
        return cells | {(path, code): code for path, code in found if code}

    def _try(
        self, exercise: RegisteredExercise, cells: Mapping[tuple[str, str], str], cases: list[Any]
    ) -> dict[tuple[str, str], list[dict[str, Any]] | None]:
        """The records of each cell, None for one that ends its process or takes too long."""
        quick = [key for key in cells if key[0] not in self.slow]
        found: dict[tuple[str, str], list[dict[str, Any]] | None] = {}
        batches = [[key] for key in cells if key[0] in self.slow]
        batches += [quick[at : at + _BATCH] for at in range(0, len(quick), _BATCH)]
        while batches:
            batch = batches.pop()
            cpu_s = _BATCH_S if len(batch) > 1 else _ALONE_S
            answers = self._ask(exercise, [cells[key] for key in batch], cases, cpu_s=cpu_s)
            if answers is None and len(batch) > 1:  # one of them ends the process: looked for by halves
                batches += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
                continue
            found.update(zip(batch, answers or [None], strict=True))
            self.slow |= {batch[0][0]} if answers is None else set()
        return found

    def _ask(
        self, exercise: RegisteredExercise, cells: list[str], cases: list[Any], *, cpu_s: float
    ) -> list[Any] | None:
        try:
            if self.worker is None:
                sources = [*self.lab.namespace_cells(), ("library", _imports())]
                self.worker = ProbeProcess(sources, exercises_folder=self.course.exercises).__enter__()
                if self.worker.error:
                    raise EdlError(f"{self.lab.name}: the solution does not run", why=self.worker.error)
            changed = [[("library", cell)] for cell in cells]
            return self.worker.collect_each(exercise.name, cases, changed=changed, cpu_s=cpu_s, wall_s=5 * cpu_s)
        except ProbeDied:
            self.__exit__()
            return None


def fits(signature: inspect.Signature | None, asked: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether a function of this signature can be called as the one that an exercise asks for."""
    function = asked
    if isinstance(asked, ast.ClassDef):
        made = [n for n in asked.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        if not made:
            return signature is None or _binds(signature, 0, [])
        function = made[0]
    assert isinstance(function, ast.FunctionDef)
    positional = len(function.args.posonlyargs) + len(function.args.args) - isinstance(asked, ast.ClassDef)
    needed = [arg.arg for arg, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d is None]
    optional = len(function.args.defaults)
    return signature is None or any(_binds(signature, n, needed) for n in range(positional - optional, positional + 1))


def _binds(signature: inspect.Signature, positional: int, named: list[str]) -> bool:
    try:
        signature.bind(*[None] * positional, **dict.fromkeys(named))
    except TypeError:
        return False
    return True


def asked_of(lab: Lab, name: str) -> list[ast.FunctionDef | ast.ClassDef]:
    """The functions and classes that an exercise asks for."""
    tree = lab.cell("solve", name).tree
    return [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def _cell(path: str, name: str) -> str:
    module, _, function = path.rpartition(".")
    return f"from {module} import {function} as {name}\n"


def _other_orders(paths: list[str], asked: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Adapters that hand the positional arguments to each function in every other order."""
    count = len(asked.args.posonlyargs) + len(asked.args.args) if paths else 0  # 13 arguments have 13! orders
    for places in islice(permutations(range(count)), 1, None):
        order = ", ".join([*(f"given[{place}]" for place in places), "**named"])
        for path in paths:
            yield path, _ARRANGED.format(call=_cell(path, "_asked").strip(), name=asked.name, order=order)


def _with_known(path: str, signature: inspect.Signature | None, asked: ast.ClassDef) -> str:
    """An adapter that hands a class the settings that it knows too; empty where it knows none, or all."""
    made = [node for node in asked.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    names = [arg.arg for one in made for arg in (*one.args.args[1:], *one.args.kwonlyargs)]
    known = [name for name in names if signature is not None and name in signature.parameters]
    if not known or known == names:
        return ""
    return _KNOWN.format(call=_cell(path, "_asked").strip(), name=asked.name, known=known)


def _imports() -> str:
    modules = sorted({path.rpartition(".")[0] for path in library_functions()})
    return "import importlib as _importlib\n" + "".join(f"_importlib.import_module({name!r})\n" for name in modules)


def _modules(package: Any) -> Iterator[Any]:
    """The modules of a package that students have and that can be imported here; those of another course are none."""
    for found in pkgutil.iter_modules([str(Path(package.__file__ or "").parent)], f"{package.__name__}."):
        if found.name in _NOT_STUDENTS or found.name.rpartition(".")[2] in ("judge", "__main__"):
            continue
        try:
            module = importlib.import_module(found.name)
        except ImportError:  # an optional library that is not installed
            continue
        yield module
        if found.ispkg:
            yield from _modules(module)


def _public(module: Any) -> list[str]:
    """What a module says is its own, not what it imports: a product is nobody's answer."""
    return list(getattr(module, "__all__", None) or (name for name in dir(module) if name[0] != "_"))


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def _plainness(path: str) -> tuple[bool, int, str]:
    return ("._" in path, len(path), path)


def _signature(value: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None
