"""Kernels in a notebook: `@jit` keeps a function's source, `kernel[grid](...)` evaluates it."""

from __future__ import annotations

import importlib.util
import inspect
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from edl_labs.virtual.tiles.kernel_source import KernelModule, parse_kernels
from edl_labs.virtual.tiles.launch_record import LaunchRecord
from edl_labs.virtual.tiles.replay import evaluate
from edl_labs.virtual.tiles.tile_errors import refuse
from edl_labs.virtual.tiles.tile_types import SCALARS

_Host = Callable[["Kernel", Any, tuple[Any, ...], Mapping[str, Any]], Any]
_HOST: ContextVar[_Host | None] = ContextVar("host", default=None)
_LOG: ContextVar[list[LaunchRecord] | None] = ContextVar("log", default=None)
_OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg"})  # change the speed alone
_GPU_HEAD = "import triton\nimport triton.language as tl\nfrom triton import jit\n\n\n"


class Kernel:
    """A function with @jit: its source text, which is evaluated at a launch and never runs as Python."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.function = function
        try:
            self.source = textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError):
            why = "Python keeps the source only of code in a file or a notebook cell"
            raise refuse(
                f"The source of `{self.__name__}` is missing.", why=why, next="put the kernel into a cell"
            ) from None

    def __getitem__(self, grid: Any) -> Callable[..., LaunchRecord]:
        return lambda *args, **named: launch(self, grid, *args, **named)

    def __call__(self, *args: Any, **named: Any) -> Any:
        then = f"launch it with {self.__name__}[grid](...)"
        raise refuse(
            f"`{self.__name__}` is a kernel and cannot be called.", why="a kernel runs on the device", next=then
        )

    def texts(self) -> dict[str, str]:
        """The source of this kernel and of those that it calls, by name, and the constexprs that they use."""
        found: dict[str, str] = {}
        todo = [self]
        while todo:
            one = todo.pop()
            if one.__name__ in found:
                continue
            found[one.__name__] = one.source
            names = one.function.__code__.co_names
            known = {name: one.function.__globals__.get(name) for name in names}
            todo += [value for value in known.values() if isinstance(value, Kernel)]
            found |= {
                name: f"{name}: tl.constexpr = {value.value!r}\n"
                for name, value in known.items()
                if isinstance(value, Constexpr)
            }
        return found

    def module(self) -> KernelModule:
        """The parsed kernels."""
        return parse_kernels("\n\n".join(self.texts().values()))

    def parameters(self) -> list[str]:
        """Names of the parameters, in order."""
        return list(inspect.signature(self.function).parameters)


class Constexpr:
    """A module-level number that kernels may use: `N = tl.constexpr(4)`; also the annotation of parameters."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Language:
    """The names of `triton.language`, for annotations and types on the host. Functions work in kernels alone."""

    constexpr = Constexpr

    def __getattr__(self, name: str) -> Any:
        if name in SCALARS:
            return SCALARS[name]
        if name.startswith("_"):
            raise AttributeError(name)
        raise refuse(
            f"tl.{name} works only in a kernel.",
            why="it needs a running program, which the host does not have",
            next="call it inside a function with @jit",
        )


tl = _Language()


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A kernel from a function: the decorator keeps its text."""
    return Kernel(function) if function is not None else jit


def launch(kernel: Kernel, grid: Any, *args: Any, on: str = "cpu", **named: Any) -> LaunchRecord:
    """Evaluate a kernel on tensors, which it changes, and give what was recorded.

    `grid` is a number, up to three numbers, or a function of the arguments by name. `on="cuda"` compiles the same
    source with Triton and runs it on the GPU; it returns None.
    """
    if not isinstance(kernel, Kernel):
        raise refuse(f"A {type(kernel).__name__} cannot be launched.", next="put @jit above the function")
    host = _HOST.get()
    if host is not None:
        return host(kernel, grid, tuple(map(_number, args)), _judged(kernel, named))
    if on == "cuda":
        return launch_on_gpu(kernel, grid, args, named)
    given = _named(kernel, args, named)
    counts = grid(dict(given)) if callable(grid) else grid
    record = evaluate(kernel.module(), kernel.__name__, counts, given)
    log = _LOG.get()
    if log is not None:
        log.append(record)
    return record


def _named(kernel: Kernel, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    names = kernel.parameters()
    if len(args) > len(names):
        raise refuse(f"`{kernel.__name__}` has {len(names)} parameters, not {len(args)}.", next="pass fewer arguments")
    given = dict(zip(names, args, strict=False))
    twice = given.keys() & named.keys()
    if twice:
        raise refuse(f"`{min(twice)}` is passed twice.", next="pass it only once")
    return {name: _number(value) for name, value in given.items()} | _judged(kernel, named)


def _judged(kernel: Kernel, named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name without options of the compiler, which change no value."""
    names = kernel.parameters()
    return {name: _number(value) for name, value in named.items() if name in names or name not in _OPTIONS}


def _number(value: Any) -> Any:
    return value.value if isinstance(value, Constexpr) else value


@contextmanager
def recorded_launches(host: _Host) -> Iterator[None]:
    """Launches inside call `host(kernel, grid, args, named)` and are not evaluated."""
    token = _HOST.set(host)
    try:
        yield
    finally:
        _HOST.reset(token)


def launches_of(function: Callable[..., Any], *args: Any) -> tuple[LaunchRecord, ...]:
    """The records of all launches that a host function makes."""
    log: list[LaunchRecord] = []
    token = _LOG.set(log)
    try:
        function(*args)
    finally:
        _LOG.reset(token)
    return tuple(log)


def launch_on_gpu(kernel: Any, grid: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Compile a kernel with Triton and run it; TileError where there is no Triton or no GPU."""
    if importlib.util.find_spec("triton") is None:
        raise refuse(
            "Triton is not installed.", next='run pip install triton (Linux only), or launch without on="cuda"'
        )
    compiled = getattr(_compiled("\n\n".join(kernel.texts().values())), kernel.__name__)
    compiled[grid](*args, **named)
    return None


@lru_cache(maxsize=64)
def _compiled(text: str) -> ModuleType:
    """A module with the kernels: Triton reads the source from a file."""
    folder = Path(tempfile.mkdtemp(prefix="edl-tiles-"))
    path = folder / "tile_kernels.py"
    path.write_text(_GPU_HEAD + text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"edl_tile_kernels_{abs(hash(text))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
