"""What can be seen of a call besides its work: sleeps, texts, collections, modules, tools, settings, files."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import stat
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from edl_labs.bench.detectors.wrapped_methods import Path as Name
from edl_labs.bench.detectors.wrapped_methods import all_wrapped, own_name_wrapped, writes_seen
from edl_labs.bench.timing.blocks import collector_off, compiled_frames

_SLEEP = time.sleep  # as it is before it is wrapped
_SLEEPS: tuple[Name, ...] = (("time", "", "sleep"), ("asyncio", "", "sleep"), ("asyncio.tasks", "", "sleep"))
_TIMED_WAITS: tuple[Name, ...] = (
    ("threading", "Condition", "wait"),
    ("threading", "Event", "wait"),
    ("threading", "Semaphore", "acquire"),
    ("select", "", "select"),
)
_EMPTIES: tuple[Name, ...] = tuple(
    (f"torch.{module}", "", "empty_cache") for module in ("cuda", "cuda.memory", "accelerator", "mps", "xpu")
)
_LOADERS: tuple[Name, ...] = (
    ("importlib._bootstrap_external", "_LoaderBasics", "exec_module"),
    ("importlib._bootstrap_external", "ExtensionFileLoader", "exec_module"),
)
_TOOLS: dict[Name, str] = {
    ("tracemalloc", "", "start"): "tracemalloc",
    ("cProfile", "Profile", "enable"): "cProfile",
    ("cProfile", "Profile", "__enter__"): "cProfile",
    ("cProfile", "Profile", "runcall"): "cProfile",
    ("sys", "", "setprofile"): "a profiler of Python calls",
    ("sys", "", "settrace"): "a tracer of Python lines",
    ("torch.profiler", "profile", "__enter__"): "torch.profiler",
    ("torch.profiler", "profile", "start"): "torch.profiler",
    ("torch.autograd.profiler", "profile", "__enter__"): "torch.autograd.profiler",
    ("torch.autograd.anomaly_mode", "detect_anomaly", "__enter__"): "anomaly mode",
    ("torch.autograd.anomaly_mode", "set_detect_anomaly", "__init__"): "anomaly mode",
}
_SETTERS: tuple[Name, ...] = (
    *(("torch", "", name) for name in ("set_num_threads", "set_float32_matmul_precision", "set_default_dtype")),
    ("torch", "", "use_deterministic_algorithms"),
    ("threadpoolctl", "threadpool_limits", "__init__"),
    ("os", "", "sched_setaffinity"),
    ("os", "", "nice"),
)
_OPENS: tuple[Name, ...] = (("builtins", "", "open"), ("io", "", "open"), ("os", "", "open"))
_SLEPT_S = 1e-4  # a poll of a queue for less is no pause


class SideEffects:
    """Notes what single calls do besides their work: `seen` the latest, `seen_before` the one before."""

    def __init__(self, functions: Iterable[types.FunctionType] = ()) -> None:
        self.functions = tuple(functions)
        self.file_bytes = (0, 0)  # read in the latest call: through the system, and from a device
        self.opened = False  # a file that lies on a disk, in the latest call
        self._opened_beside = [False, False]  # by other threads, in the call before the latest and in that
        self.own: set[str] = set()  # kinds that a function timed here did itself, in a line of its own
        self.seen: dict[str, str] = {}
        self.seen_before: dict[str, str] = {}

    def watch(self, call: Callable[[], Any]) -> Any:
        """The result of `call()`; every name that is wrapped, and the collector, are as before afterwards."""
        self.seen, self.seen_before, self.opened = {}, self.seen, False
        self._opened_beside = [self._opened_beside[1], False]
        caller, read = threading.get_ident(), read_bytes()
        with ExitStack() as stack:
            # With the collector off, whatever is collected was asked for.
            stack.enter_context(collector_off())
            stack.enter_context(self._collections())
            noting = ((names, self._noting(kind, text, caller)) for kind, names, text in _WATCHED)
            waiting = [(name, self._waiting(caller)) for name in _TIMED_WAITS]
            stack.enter_context(all_wrapped([*((name, see) for names, see in noting for name in names), *waiting]))
            stack.enter_context(all_wrapped((name, self._opening(caller)) for name in _OPENS))
            stack.enter_context(own_name_wrapped(self.functions, _SLEEP, self._noting("sleeps", _slept, caller)))
            stack.enter_context(writes_seen(lambda: self._see("prints", "it writes to a standard stream")))
            before, modules, frames = settings(), len(sys.modules), compiled_frames()
            result = call()
            after = settings()
        # What a library or a compiler sets when it is loaded is done once, and so is waiting for a compiler's lock.
        compiled = compiled_frames() != frames
        if compiled and "sleeps" not in self.own:
            self.seen.pop("sleeps", None)
        loaded = len(sys.modules) != modules or compiled
        changed = [] if loaded else [name for name, value in after.items() if before.get(name, value) != value]
        if changed:
            self._see("settings_changed", f"it changes {changed[0]} to {after[changed[0]]}")
        if read is not None and (now := read_bytes()) is not None:
            self.file_bytes = (now[0] - read[0], now[1] - read[1])
        return result

    def _see(self, kind: str, text: str) -> None:
        self.seen.setdefault(kind, text)

    def _see_own(self, kind: str) -> None:
        """Note a kind that one of the functions timed here did in a line of its own, not in what it called."""
        frame = _wanting(sys._getframe(2))
        if frame is not None and frame.f_code in {function.__code__ for function in self.functions}:
            self.own.add(kind)

    @contextmanager
    def _collections(self) -> Iterator[None]:
        def see(phase: str, info: dict[str, Any]) -> None:
            if not _by_torch():
                self._see("housekeeping", "it calls gc.collect()")
                self._see_own("housekeeping")

        gc.callbacks.append(see)
        try:
            yield
        finally:
            gc.callbacks.remove(see)

    def _noting(self, kind: str, text: Callable[[tuple[Any, ...]], str], caller: int) -> Callable[..., Any]:
        def through(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == caller and (said := text(args)) and not _by_torch():
                self._see(kind, said)
                self._see_own(kind)
            return method(*args, **kwargs)

        return through

    def _opening(self, caller: int) -> Callable[..., Any]:
        """What other threads open may be for the function or not: it counts from the second call in a row on."""

        def through(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            if not self.opened and is_disk_file(result):
                beside = threading.get_ident() != caller
                self._opened_beside[1] = self._opened_beside[1] or beside
                self.opened = not beside or all(self._opened_beside)
            return result

        return through

    def _waiting(self, caller: int) -> Callable[..., Any]:
        def through(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            given = kwargs.get("timeout", args[-1] if args else None)
            in_vain = result is False or result == ([], [], [])
            if in_vain and threading.get_ident() == caller and _is_pause(given):
                self._see("sleeps", "it waits for a time-out to pass")
            return result

        return through


def _by_torch() -> bool:
    """Whether torch itself does it: its compiler collects garbage and sets modes for the time of its own work."""
    frame = _wanting(sys._getframe(2))
    return frame is not None and "/torch/" in frame.f_code.co_filename.replace("\\", "/")


def _wanting(frame: types.FrameType | None) -> types.FrameType | None:
    """The frame that wants what is done: the first one outside of what stands between."""
    while frame is not None and frame.f_code.co_filename.replace("\\", "/").startswith(_BETWEEN):
        frame = frame.f_back
    return frame


# Frames of this part and of the standard library stand between what is called and who wants it.
_BETWEEN = (
    str(Path(__file__).parent).replace("\\", "/"),
    str(Path(contextlib.__file__).parent).replace("\\", "/") + "/contextlib",
)


def _is_pause(seconds: Any) -> bool:
    return isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and seconds >= _SLEPT_S


def _slept(args: tuple[Any, ...]) -> str:
    return "it calls sleep()" if args and _is_pause(args[0]) else ""


_WATCHED: tuple[tuple[str, tuple[Name, ...], Callable[[tuple[Any, ...]], str]], ...] = (
    ("sleeps", _SLEEPS, _slept),
    ("housekeeping", _EMPTIES, lambda args: "it calls empty_cache()"),
    ("loads_code", _LOADERS, lambda args: f"it executes the module {getattr(args[-1], '__name__', '')}"),
    ("settings_changed", _SETTERS, lambda args: "it calls a function that changes how the process computes"),
    *(("instrumented", (path,), lambda args, tool=tool: f"it turns {tool} on") for path, tool in _TOOLS.items()),
)


def settings() -> dict[str, Any]:
    """Settings of this process that change how fast or how exactly it computes."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    found: dict[str, Any] = {
        "the switch interval": sys.getswitchinterval(),
        "the recursion limit": sys.getrecursionlimit(),
        "the collector's thresholds": gc.get_threshold(),
        **{name: os.environ.get(name) for name in os.environ if name.endswith("_NUM_THREADS") or name in _VARIABLES},
        **dict.fromkeys(_VARIABLES - os.environ.keys()),
    }
    if hasattr(os, "sched_getaffinity"):
        found["the processors in use"] = len(os.sched_getaffinity(0))
    if numpy is not None:
        found["numpy's error handling"] = tuple(numpy.geterr().values())
    if torch is not None:
        found |= {
            "torch's threads": torch.get_num_threads(),
            "torch's default dtype": str(torch.get_default_dtype()),
            "torch's gradient mode": torch.is_grad_enabled(),
            "torch's float32 precision": torch.get_float32_matmul_precision(),
            "torch's deterministic mode": torch.are_deterministic_algorithms_enabled(),
            "cudnn's benchmark mode": torch.backends.cudnn.benchmark,
        }
    return found


_VARIABLES = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_LAUNCH_BLOCKING"}


_OUT = (1, 2)  # standard output and standard error, wherever they go


def is_disk_file(item: Any) -> bool:
    """Whether this path, descriptor or open file gives bytes of a disk: no pipe or device, none of /proc, no log."""
    try:
        if isinstance(item, io.IOBase) and (not item.readable() or item.fileno() in _OUT):
            return False
        found = os.stat(item.fileno() if isinstance(item, io.IOBase) else item)
    except (OSError, ValueError, TypeError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


def read_bytes() -> tuple[int, int] | None:
    """Bytes that this process has read so far, through the system and from a device; None where it does not tell."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        facts = dict(line.split(": ") for line in lines)
        return int(facts["rchar"]), int(facts["read_bytes"])
    except (OSError, ValueError, KeyError):
        return None
