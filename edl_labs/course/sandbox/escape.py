"""Ways out of the sandbox, each tried from inside and looked at from outside.

A sandbox that is installed is not yet one that holds. What counts here is what the outside observes: a file that
appeared, a packet that arrived, a process that is gone, a secret in what came back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edl_labs.course.sandbox.canary import Canary
from edl_labs.course.sandbox.hoards import HOARDS, kept_mib
from edl_labs.course.sandbox.kernel.exchange import KernelDied, Violation
from edl_labs.course.sandbox.kernel.pool import KernelPool
from edl_labs.course.sandbox.level import Level, best_level
from edl_labs.course.sandbox.limits import MIB, Limits
from edl_labs.course.sandbox.view import INSTRUCTORS_PARTS

_LIMITS = Limits(memory_bytes=512 * MIB, processes=64, inodes=2000, sockets=1024, grace_s=1.0)
_TRY_S = 8.0  # the slowest try, filling the disks, takes seconds
_STORED_MIB = (_LIMITS.home_bytes + _LIMITS.tmp_bytes + _LIMITS.shm_bytes) // MIB
_SEEN_AT_MOST = 300  # a few lines of a terminal


@dataclass(frozen=True)
class Escape:
    """One way out: its name, whether the sandbox held, and what was seen."""

    name: str
    held: bool
    seen: str


@dataclass(frozen=True)
class _Attempt:
    """`code` runs inside with the canary's places as `outside`, and sets `seen`; `escaped` looks from outside."""

    name: str
    code: str
    escaped: Callable[[Canary, str], bool]


def escapes(*, level: Level | None = None, paths: Sequence[Path] = ()) -> list[Escape]:
    """Try every way out of a kernel at `level` (the best that works here); `paths`: files that must not be readable.

    Takes some seconds. Nothing outside is harmed where one succeeds: the targets are canaries.
    """
    level = level or best_level()
    if not level.trusted:
        return [
            Escape(attempt.name, False, f"not tried: the level {level.value} blocks nothing") for attempt in _ATTEMPTS
        ]
    with KernelPool(level=level, limits=_LIMITS, preload=()) as pool, Canary(paths) as canary:
        canary.watch(pool)
        return [_try(attempt, pool, canary) for attempt in _ATTEMPTS]


def _try(attempt: _Attempt, pool: KernelPool, canary: Canary) -> Escape:
    seen = _seen_inside(attempt.code, pool, canary)
    escaped = attempt.escaped(canary, seen)
    return Escape(attempt.name, not escaped, " ".join(seen.split())[:_SEEN_AT_MOST])


def _seen_inside(code: str, pool: KernelPool, canary: Canary) -> str:
    lines = "\n".join("    " + line for line in code.strip().splitlines())
    text = (
        f"import json, os, socket, subprocess, sys\noutside = json.loads(payload)\ntry:\n{lines}\n"
        "except BaseException as error:\n    seen = f'{type(error).__name__}: {error}'\n"
        "answer(str(seen).encode())"
    )
    payload = json.dumps(canary.places()).encode()
    with pool.kernel() as kernel:
        try:
            return kernel.ask(text, payload, timeout_s=_TRY_S, max_bytes=1 * MIB).decode(errors="replace")
        except (KernelDied, Violation) as error:
            return str(error)


def _kept_too_much(canary: Canary, seen: str) -> bool:
    return kept_mib(seen) * MIB > _LIMITS.memory_bytes or canary.another_kernel_fails(seen)


_LIBC = "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
_ERRNO = "seen = 'done' if result != -1 else os.strerror(ctypes.get_errno())"

_ATTEMPTS = (
    _Attempt("read a file outside", "seen = open(outside['secret_file']).read()", Canary.secret_in),
    _Attempt(
        "read the gradebook or the solution",
        "seen = {path: open(path, 'rb').read(9) for path in outside['paths'] if os.path.exists(path)} or 'not there'",
        lambda canary, seen: seen != "not there" and bool(canary.paths) and not _is_error(seen),
    ),
    _Attempt(
        "read the judge's code",
        f"import edl_labs\nplace = list(edl_labs.__path__)[0]\nparts = {INSTRUCTORS_PARTS!r}\n"
        "names = [os.path.join(at, name) for part in parts for at, _, files in os.walk(os.path.join(place, part))\n"
        "         for name in files if name.endswith('.py')]\n"
        "seen = [open(name).read(20) for name in names]",
        lambda canary, seen: seen != "[]" and not _is_error(seen),
    ),
    _Attempt("write outside", "open(outside['drop_file'], 'w').write('x'); seen = 'written'", Canary.dropped),
    _Attempt(
        "write to the system's folders",
        "seen = []\n"
        "for place in ('/usr', '/etc', '/', '/dev', sys.prefix, os.path.dirname(json.__file__)):\n"
        "    try:\n"
        "        open(os.path.join(place, 'edl-escape'), 'w'); seen.append('wrote ' + place)\n"
        "    except OSError as error:\n"
        "        seen.append(error.strerror)",
        lambda canary, seen: "wrote" in seen,
    ),
    _Attempt(
        "TCP",
        "seen = []\n"
        "for host in outside['hosts']:\n"
        "    try:\n"
        "        socket.create_connection((host, outside['tcp_port']), timeout=1).sendall(b'x'); seen.append('sent')\n"
        "    except OSError as error:\n"
        "        seen.append(str(error))",
        Canary.heard_tcp,
    ),
    _Attempt(
        "UDP",
        "seen = []\n"
        "for host in outside['hosts']:\n"
        "    try:\n"
        "        socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', (host, outside['udp_port'])); seen.append('sent')\n"
        "    except OSError as error:\n"
        "        seen.append(str(error))",
        Canary.heard_udp,
    ),
    _Attempt(
        "abstract Unix socket",
        "channel = socket.socket(socket.AF_UNIX); channel.connect('\\0' + outside['abstract']); seen = 'connected'",
        lambda canary, seen: seen == "connected",
    ),
    _Attempt(
        "VSOCK and raw sockets",
        "seen = []\n"
        "for family, kind in ((40, 1), (17, 3), (2, 3)):\n"
        "    try:\n"
        "        socket.socket(family, kind); seen.append(f'opened family {family}')\n"
        "    except OSError as error:\n"
        "        seen.append(error.strerror)",
        lambda canary, seen: "opened" in seen,
    ),
    _Attempt(
        "signal the parent and siblings",
        "seen = []\n"
        "for pid in outside['pids']:\n"
        "    try:\n"
        "        os.kill(pid, 0); seen.append('reached'); os.kill(pid, 9)\n"
        "    except OSError as error:\n"
        "        seen.append(error.strerror)",
        Canary.lost_a_process,
    ),
    _Attempt("signal every process", "os.kill(-1, 9)\nseen = 'sent'", Canary.lost_a_process),
    _Attempt(
        "trace another process",
        _LIBC + "result = min(libc.ptrace(16, pid, 0, 0) for pid in [*outside['pids'], os.getppid()])\n" + _ERRNO,
        lambda canary, seen: seen == "done",
    ),
    _Attempt(
        "read another process's memory",
        "seen = [open(f'/proc/{pid}/maps').readline() for pid in outside['pids']]",
        lambda canary, seen: not _is_error(seen),
    ),
    _Attempt(
        "see other processes",
        "lines = [open(f'/proc/{pid}/cmdline').read() for pid in os.listdir('/proc') if pid.isdigit()]\n"
        "seen = [line for line in lines if outside['marker'] in line] or f'{len(lines)} processes, all its own'",
        Canary.marker_in,
    ),
    _Attempt(
        "write to /proc/sys",
        "open('/proc/sys/kernel/core_pattern', 'r+').write(open('/proc/sys/kernel/core_pattern').read())\n"
        "seen = 'written'",
        lambda canary, seen: seen == "written",
    ),
    _Attempt(
        "nested namespaces",
        _LIBC + "result = libc.unshare(0x10000000)\n" + _ERRNO,
        lambda canary, seen: seen == "done",
    ),
    _Attempt(
        "nested namespaces by another program",
        "done = subprocess.run(['unshare', '--user', '--mount', 'true'], capture_output=True, text=True)\n"
        "seen = 'done' if done.returncode == 0 else done.stderr",
        lambda canary, seen: seen == "done",
    ),
    _Attempt(
        "mount",
        _LIBC + "result = libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)\n" + _ERRNO,
        lambda canary, seen: seen == "done",
    ),
    _Attempt(
        "gain privileges",
        "state = open('/proc/self/status').read()\n"
        "named = ('CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp:')\n"
        "seen = [line for line in state.splitlines() if line.startswith(named)]",
        lambda canary, seen: not all(part in seen for part in ("CapEff:\\t0000000000000000", "NoNewPrivs:\\t1")),
    ),
    _Attempt(
        "shared memory of System V",
        _LIBC + "result = libc.shmget(0, 4096, 0o1600)\n" + _ERRNO,
        lambda canary, seen: seen == "done",
    ),
    *(_Attempt(f"memory of {name}", code, _kept_too_much) for name, code in HOARDS.items()),
    _Attempt(
        "fork bomb",
        "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
        Canary.another_kernel_fails,
    ),
    _Attempt(
        "memory",
        "held = []\nfor number in range(256):\n    held.append(bytearray(b'x' * (16 << 20)))\nseen = 'held 4 GiB'",
        lambda canary, seen: seen.startswith("held") or canary.another_kernel_fails(seen),
    ),
    _Attempt(
        "disk",
        "written = 0\n"
        "for number in range(64):\n"
        "    for place in ('/tmp', os.path.expanduser('~'), '/dev/shm'):\n"
        "        try:\n"
        "            written += open(os.path.join(place, f'filler{number}'), 'wb').write(bytes(32 << 20)) >> 20\n"
        "        except OSError:\n"
        "            pass\n"
        "seen = f'{written} MiB written'",
        lambda canary, seen: seen.endswith("written") and int(seen.split()[0]) > _STORED_MIB,
    ),
    _Attempt(
        "leftover daemon",
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.execvp('sleep', [outside['daemon'], '600'])\n"
        "    os._exit(0)\n"
        "import time; time.sleep(0.5); seen = 'started'",
        Canary.left_daemon,
    ),
)


def _is_error(seen: str) -> bool:
    return seen.partition(":")[0].endswith(("Error", "Exception"))
