"""A student's process, from the fork to a running ipykernel. Everything here can be read by students' code."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs.course.sandbox import syscalls
from edl_labs.course.sandbox.landlock import Fence, restrict
from edl_labs.course.sandbox.limits import Limits
from edl_labs.course.sandbox.stage import become_user
from edl_labs.course.sandbox.zygote.box import Place

READY = b"ready"
_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
_filter: Any = None


def prepare_filter(*, network: bool) -> None:
    """Build the seccomp filter once, before kernels are forked."""
    global _filter
    from edl_labs.course.sandbox.syscall_filter import build_filter

    _filter = build_filter(network=network)


@dataclass(frozen=True)
class Settings:
    """What is the same for a kernel whatever runs in it."""

    limits: Limits
    place: Place
    fence: Fence | None = None
    cuda: bool = False


def run_kernel(request: dict[str, Any], settings: Settings, fds: list[int]) -> None:
    """Fence this process in, and be an ipykernel until killed. `fds`: start pipe, shell, iopub, calls, files if any.

    Raises what keeps it from starting.
    """
    start, shell, iopub, calls, *files = fds
    os.setsid()
    syscalls.become_dumpable()
    Path("/proc/self/oom_score_adj").write_text("1000")
    _be_at_home(settings.place)
    _limit(settings.limits, cuda=settings.cuda)
    if settings.place.uid is not None:
        syscalls.drop_bounding()
        become_user(settings.place.uid)
        syscalls.become_dumpable()
    if files:
        _unpack(request["files"], files[0])
    _close_all_but({start, shell, iopub, calls})
    silence()
    _fence_in(settings.fence)
    _start_afresh(request["seed"], settings.limits.threads)
    app = make_app(Path(settings.place.tmp), key=request["key"], listeners={"shell": shell, "iopub": iopub})
    app.kernel.edl_calls = calls  # where a probe's proxies call the judge
    _forget_course()
    os.write(start, READY)
    os.close(start)
    app.start()


def make_app(folder: Path, *, key: str, listeners: dict[str, int]) -> Any:
    """An initialised IPKernelApp; channels named in `listeners` listen on those descriptors, others in `folder`."""
    import zmq
    from ipykernel.kernelapp import IPKernelApp
    from traitlets.config import Config

    taken = {_CHANNELS.index(channel) + 1: fd for channel, fd in listeners.items()}

    class GivenSockets(IPKernelApp):
        # No command line and no configuration files: reading none takes a tenth of a kernel's start.
        aliases = {}  # noqa: RUF012 (traitlets' own way to declare them)
        flags = {}  # noqa: RUF012

        def parse_command_line(self, *_: Any, **__: Any) -> None:
            pass

        def load_config_file(self, *_: Any, **__: Any) -> None:
            pass

        def _try_bind_socket(self, socket: Any, port: int) -> int:
            if port in taken:
                socket.setsockopt(zmq.USE_FD, taken[port])
            return int(super()._try_bind_socket(socket, port))

    GivenSockets.__name__ = IPKernelApp.__name__  # configuration goes by the class's name
    connection = folder / "kernel.json"
    ports = {f"{channel}_port": number for number, channel in enumerate(_CHANNELS, start=1)}
    where = {"transport": "ipc", "ip": str(folder / "kernel"), "key": key, "signature_scheme": "hmac-sha256"}
    connection.write_text(json.dumps({**where, **ports, "kernel_name": "python3"}))
    # Files sent next to a notebook are importable, but last: they do not stand in for the standard library.
    # A tip of the day is drawn from the student's random numbers whenever a client asks for the banner: none.
    settings = Config(
        {
            "HistoryManager": {"enabled": False},
            "InteractiveShell": {"enable_tip": False},
            "InteractiveShellApp": {"ignore_cwd": True},
        }
    )
    app = GivenSockets.instance(connection_file=str(connection), config=settings)
    app.initialize([])
    _plots_inline(app.kernel.shell)
    return app


def silence() -> None:
    """Nothing of this process reaches the grader's terminal."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)


def environment(home: str, tmp: str) -> dict[str, str]:
    """The environment of a student's kernel: nothing of the grader's."""
    return {
        "EDL_LABS_QUICK": "1",  # measurements that no mark hangs on take their least budget
        "HOME": home,
        "IPYTHONDIR": f"{tmp}/ipython",
        "LANG": "C.UTF-8",
        "LOGNAME": "student",
        "MKL_NUM_THREADS": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MPLCONFIGDIR": f"{tmp}/matplotlib",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "PYTHONHASHSEED": "0",
        "TMPDIR": tmp,
        "TORCH_HOME": f"{home}/.cache/torch",
        "USER": "student",
    }


def _be_at_home(place: Place) -> None:
    os.chdir(place.home)
    os.environ.clear()
    os.environ.update(environment(place.home, place.tmp))
    sys.argv = ["ipykernel_launcher"]
    sys.path[:] = [*(path for path in sys.path if path not in ("", place.home)), place.home]


def _limit(limits: Limits, *, cuda: bool) -> None:
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_NOFILE, limits.open_files)
    _set(resource.RLIMIT_FSIZE, limits.file_bytes)
    _set(resource.RLIMIT_CPU, limits.cpu_s)
    _set(resource.RLIMIT_NPROC, limits.processes)
    if not cuda:
        # An honest allocation that is too large becomes a MemoryError. CUDA maps more than it uses.
        _set(resource.RLIMIT_DATA, _data_bytes() + limits.memory_bytes * 7 // 8)


def _set(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def _data_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def _unpack(sizes: list[list[Any]], fd: int) -> None:
    """Write the files that lie one after the other behind `fd`, below the working folder."""
    with open(fd, "rb", closefd=False) as packed:
        for name, size in sizes:
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(packed.read(size))


def _close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in kept:
            with contextlib.suppress(OSError):
                os.close(fd)


def _fence_in(fence: Fence | None) -> None:
    syscalls.no_new_privileges()
    if fence is not None:
        restrict(fence, folder=os.path.dirname(os.getcwd()))
    syscalls.drop_capabilities()
    if _filter is not None:
        _filter.load()


def _start_afresh(seed: int, threads: int) -> None:
    """Random states of this kernel's own: forks would otherwise share the zygote's."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)
        torch.set_num_threads(threads)


def _plots_inline(shell: Any) -> None:
    # Does what `%matplotlib inline` does; must come after the shell exists, which the zygote's import came before.
    if "matplotlib" in sys.modules:
        from IPython.core.pylabtools import select_figure_formats
        from matplotlib_inline import backend_inline

        backend_inline._enable_matplotlib_integration()
        # Figures are made, shown as one line and closed: drawing them takes longer than most checks.
        select_figure_formats(shell, ())


def _forget_course() -> None:
    """`edl_labs.course` is not there for students: not as files, nor as modules already imported."""
    import edl_labs

    for name in [name for name in sys.modules if name.startswith("edl_labs.course")]:
        del sys.modules[name]
    vars(edl_labs).pop("course", None)
