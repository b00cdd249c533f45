"""Kernels of one assignment: a parent process with the notebook's imports already loaded, and its forks.

Each module is imported once for the class instead of once a submission; none that neither notebook nor probes need.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from edl_labs.course.assignment import Assignment
from edl_labs.course.sandbox import Level, Limits
from edl_labs.course.sandbox.kernel.client import SandboxKernel
from edl_labs.course.sandbox.kernel.exchange import KernelDied, Violation
from edl_labs.course.sandbox.kernel.pool import KernelPool
from edl_labs.errors import EdlError, UsageError

# Imported whether or not the text asks for them: the library does, where it measures or draws.
ALWAYS = ("edl_labs", "numpy", "torch", "matplotlib.pyplot", "ipywidgets")
# What torch imports when a process makes its first optimizer: 900 modules, 1.5 s of processor time each time.
BEHIND_OPTIMIZERS = "torch._dynamo"
# Others of a student's kernel that may be imported before a fork: they start no thread.
_FORKABLE = ("torchvision", "scipy", "pandas", "PIL", "tqdm")
_PACKAGE = Path(__file__).resolve().parents[2]
_PROBES = ("edl_labs.checks", "edl_labs.checks._check", "edl_labs.checks.evidence", "edl_labs.checks.caught_output")
# What a probe imports, tried before the first student; the sandbox shows less than this process sees.
_IMPORTS = """
try:
    import edl_labs.checks.evidence, edl_labs.checks.plain_data, edl_labs.checks.caught_output
    from edl_labs.checks.lab_exercises import load_lab
    if payload:
        load_lab(payload.decode())
    answer(b"")
except Exception as error:
    answer(f"{type(error).__name__}: {error}".encode())
"""


def begin_pool(level: Level, limits: Limits) -> KernelPool:
    """A pool whose parent process starts while its caller goes on, with what every lab's kernels import."""
    return KernelPool(level=level, limits=limits, preload=tuple(filter(_is_module, (*ALWAYS, *_PROBES))), wait=False)


def preload_of(assignment: Assignment) -> tuple[str, ...]:
    """Modules to import before kernels are forked, in the order of their first use."""
    asked = [name for cell in assignment.cells if cell.kind == "code" for name in imported(cell.solution)]
    wanted = dict.fromkeys((*ALWAYS, *_PROBES))
    wanted.update(dict.fromkeys(name for name in asked if _may_be(name)))
    if not assignment.own_exercises:
        wanted[f"edl_labs.exercises.{assignment.name}"] = None
    if any("optim." in text for text in _texts(assignment)):
        wanted[BEHIND_OPTIMIZERS] = None
    return tuple(name for name in wanted if _is_module(name))


def _texts(assignment: Assignment) -> Iterator[str]:
    """The lab's code, and that of its probes, read and not imported."""
    yield from (cell.solution for cell in assignment.cells if cell.kind == "code")
    probes = _PACKAGE / "exercises" / assignment.name
    if not assignment.own_exercises and probes.is_dir():
        yield from (path.read_text(encoding="utf-8") for path in sorted(probes.glob("*.py")))


def imported(code: str) -> list[str]:
    """Dotted names that `code` imports; some may be attributes, not modules. Empty when it does not parse."""
    try:
        return [name for node in ast.walk(ast.parse(code)) for name in _names(node)]
    except (SyntaxError, ValueError, RecursionError):
        return []


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        if node.module.partition(".")[0] == "edl_labs":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _may_be(name: str) -> bool:
    return name.partition(".")[0] in ("edl_labs", *_FORKABLE)


def _is_module(name: str) -> bool:
    """Whether it can be imported, found out without importing anything."""
    top, _, rest = name.partition(".")
    if top != "edl_labs":
        return find_spec(top) is not None
    path = _PACKAGE.joinpath(*rest.split(".")) if rest else _PACKAGE
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


class ClassKernels:
    """Fresh kernels with what is next to the released notebook; threads may share it. Its parent process starts when it
    is first needed, if it has not `begun`.

    `gpu` is the number of the one GPU that kernels see. `on_gpu` without it refuses to start any.
    """

    def __init__(
        self,
        assignment: Assignment,
        *,
        level: Level,
        limits: Limits,
        stopping: threading.Event,
        gpu: int | None = None,
        on_gpu: bool = False,
        begun: KernelPool | None = None,
    ) -> None:
        self._assignment, self._level, self._limits, self._stopping = assignment, level, limits, stopping
        self._gpu, self._on_gpu, self._begun = gpu, on_gpu, begun
        self._starting = threading.Lock()
        self._pool: KernelPool | None = None
        self._no_pool: UsageError | None = None
        self._tried: list[SandboxKernel] = []

    def close(self) -> None:
        """End every kernel."""
        for pool in (self._pool, self._begun):
            if pool is not None:
                pool.close()

    def new_kernel(self, modules: Mapping[str, bytes] = MappingProxyType({})) -> SandboxKernel:
        """A fresh kernel with what is next to the released notebook, and a student's own `modules`."""
        return self.pool().kernel(files={**modules, **self._assignment.files})

    def solution_kernel(self) -> SandboxKernel:
        """A fresh kernel for the solution: the first is the one in which imports were tried."""
        self.pool()
        try:
            return self._tried.pop()
        except IndexError:
            return self.new_kernel()

    def pool(self) -> KernelPool:
        """The kernels' parent, with the usual libraries imported."""
        with self._starting:
            if self._no_pool is not None:
                raise self._no_pool
            if self._pool is None:
                try:
                    self._pool = self._tried_pool()
                except UsageError as error:
                    self._no_pool = error  # whoever waits for it would start it in vain again
                    raise
            return self._pool

    def _tried_pool(self) -> KernelPool:
        if self._stopping.is_set():
            raise EdlError("the run was stopped")
        pool = self._new_pool()
        try:
            self._try(pool)
            if self._stopping.is_set():
                raise EdlError("the run was stopped")
        except BaseException:
            pool.close()
            raise
        return pool

    def _try(self, pool: KernelPool) -> None:
        """UsageError, once and at the start, when kernels cannot import what probes need: nobody could be graded."""
        lab = "" if self._assignment.own_exercises else self._assignment.name
        try:
            kernel = pool.kernel(files=self._assignment.files)
            said = kernel.ask(_IMPORTS, lab.encode(), timeout_s=self._limits.cell_s).decode("utf-8", "replace")
            self._tried.append(kernel)  # no student's code has run in it, and the solution may
        except (KernelDied, Violation) as end:
            said = str(end)
        if said:
            raise UsageError(
                "students' kernels cannot import edl_labs",
                why=said[:500],
                next="install edl-labs and its dependencies into this environment, then run edl-labs doctor --sandbox",
            )

    def _new_pool(self) -> KernelPool:
        if self._on_gpu and self._gpu is None:
            why = "this class is graded on GPUs, but this process has no GPU"
            raise EdlError(
                "the submission was not graded",
                why=why,
                next="grade again with --shard or --ray, and with the same --gpus",
            )
        preload, begun = preload_of(self._assignment), self._begun
        self._begun = None
        if begun is not None:
            try:
                begun.add(preload)
                return begun
            except EdlError:
                begun.close()
        for names in dict.fromkeys((preload, tuple(name for name in preload if name != BEHIND_OPTIMIZERS))):
            # What the lab imports may be what cannot be imported before a fork; the kernels import it themselves then.
            with suppress(UsageError):
                return KernelPool(level=self._level, limits=self._limits, preload=names, gpu=self._gpu)
        return KernelPool(level=self._level, limits=self._limits, gpu=self._gpu)
