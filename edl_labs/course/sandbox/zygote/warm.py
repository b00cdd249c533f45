"""Everything a kernel would import, imported once; and nothing left running."""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from edl_labs.course.sandbox.zygote import inside

_KERNEL_MODULES = (
    "IPython", "IPython.core.completer", "IPython.core.historyapp", "IPython.core.magics", "asyncio", "comm",
    "ipykernel.connect", "ipykernel.ipkernel", "ipykernel.kernelapp", "ipykernel.zmqshell", "matplotlib_inline",
    "pygments.formatters.terminal256", "pygments.lexers", "sqlite3", "tornado.ioloop", "tornado.platform.asyncio",
    "traceback", "zmq",
)  # fmt: skip

# What notebooks do in their first cells, for what it imports.
_REHEARSAL = ("1 / 0", "%time 1", "from IPython.display import HTML, display; display(HTML('x'))", "import warnings")
_REHEARSAL_OF = {
    "numpy": "import numpy; numpy.ones(2)",
    "torch": "import torch; torch.ones(2)",
    "matplotlib.pyplot": "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()",
    "ipywidgets": "import ipywidgets; ipywidgets.IntSlider()",
}


def import_all(preload: Iterable[str], *, scratch: str) -> int:
    """Import `preload` and what a kernel running them needs; the number of modules that a rehearsal added.

    RuntimeError when a module cannot be imported, or leaves a thread or CUDA running: forks would not survive it.
    """
    names = list(preload)
    with _uncollected():
        with _library_loading("torch" in names):
            for name in _KERNEL_MODULES:
                _import(name)
        for name in names:
            _import(name)
        _without_debugger()
        _single_threaded()
        late = _rehearsal(names, scratch)
        _warm_paths()
        added = [name for name in late() if _try_import(name)]
    _check_forkable()
    return len(added)


@contextmanager
def _library_loading(wanted: bool) -> Iterator[None]:
    """While active, a thread loads torch's library, a fifth of its import, which no lock of Python's is held for."""
    spec = importlib.util.find_spec("torch") if wanted else None
    paths = [Path(folder, "lib", "libtorch.so") for folder in (spec and spec.submodule_search_locations) or ()]
    threads = [threading.Thread(target=_load, args=(path,)) for path in paths if path.is_file()]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()


def _load(path: Path) -> None:
    """Have the system load a library; where it cannot, the import will say so."""
    dlopen = ctypes.CDLL(None).dlopen  # called as any function, so that other threads go on meanwhile
    dlopen.argtypes, dlopen.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
    dlopen(os.fsencode(path), os.RTLD_NOW)


def import_more(names: Iterable[str]) -> None:
    """Import what only one lab needs, later than all else; RuntimeError as for `import_all`."""
    with _uncollected():
        for name in names:
            _import(name)
    _check_forkable()


@contextmanager
def _uncollected() -> Iterator[None]:
    """While active, nothing looks for garbage: what is imported stays, and looking takes a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise RuntimeError(f"{name} cannot be imported: {error}") from error


def _try_import(name: str) -> bool:
    try:
        importlib.import_module(name)
    except Exception:
        # A submodule that only exists after some call, or that wants a display: kernels import it themselves.
        return False
    return True


def _without_debugger() -> None:
    import ipykernel.debugger

    ipykernel.debugger._is_debugpy_available = False


def _single_threaded() -> None:
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def _rehearsal(preload: list[str], scratch: str) -> Callable[[], list[str]]:
    """Starts a throw-away kernel in a child process; the modules that it imported, once it has ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            before = set(sys.modules)
            _run_rehearsal(preload, tempfile.mkdtemp(dir=scratch))
            late = [name for name in sys.modules if name not in before and not name.startswith("__")]
            os.write(writing, json.dumps(late).encode()[:60_000])
        finally:
            os._exit(0)
    os.close(writing)

    def imported() -> list[str]:
        with open(reading, "rb") as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        try:
            return list(json.loads(text))
        except ValueError:
            return []

    return imported


def _run_rehearsal(preload: list[str], folder: str) -> None:
    os.chdir(folder)
    os.environ["IPYTHONDIR"] = folder
    inside.silence()
    shell = inside.make_app(Path(folder), key="", listeners={}).kernel.shell
    for code in (*(_REHEARSAL_OF[name] for name in preload if name in _REHEARSAL_OF), *_REHEARSAL):
        shell.run_cell(code)


def _warm_paths() -> None:
    """Fill caches that each kernel would fill anew. Only operations that start no thread."""
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(0)  # imports what each kernel's own random state needs
    if "matplotlib.pyplot" in sys.modules:
        import matplotlib.pyplot as plt

        plt.plot([1, 2])
        plt.close("all")
    if torch := sys.modules.get("torch"):
        ones = torch.ones(2, 2, requires_grad=True)
        repr(ones)
        (ones @ ones).sum().backward()


def _check_forkable() -> None:
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"a preloaded module left {threads - 1} threads running; forked kernels would hang")
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        raise RuntimeError("a preloaded module started CUDA; forked kernels could not use it")


def own_memory() -> list[tuple[int, int]]:
    """From where to where this process's memory lies that is no file's: what it has imported, above all."""
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, mode, _, _, node, *_ = line.split()
        if mode.startswith("rw") and mode.endswith("p") and node == "0" and "[stack]" not in line:
            start, stop = where.split("-")
            ranges.append((int(start, 16), int(stop, 16)))
    return ranges
