"""Ways to keep memory that no process's own figures show: in sockets, pipes, page tables and lists of the system's.

Each is code that runs inside and sets `seen` to what it kept, in MiB, or to why it could not.
"""

from __future__ import annotations

_HOARD = """
import fcntl, mmap, os, socket, struct, time
kept = mmap.mmap(-1, 16 * 64)
def fill(end):
    filled, piece = 0, bytes(1 << 16)
    os.set_blocking(end, False)
    try:
        while True:
            filled += os.write(end, piece)
    except OSError:
        return filled
def hoard(keep, processes=12):
    for number in range(processes):
        if os.fork() == 0:
            total = 0
            try:
                while True:
                    total += keep()
                    struct.pack_into('q', kept, 16 * number, total)
            except Exception:
                struct.pack_into('q', kept, 16 * number + 8, 1)
                time.sleep(600)
    deadline = time.monotonic() + 6
    while time.monotonic() < deadline:
        if all(struct.unpack_from('q', kept, 16 * n + 8)[0] for n in range(processes)): break
        time.sleep(0.05)
    time.sleep(0.5)
    return f"{sum(struct.unpack_from('q', kept, 16 * n)[0] for n in range(processes)) >> 20} MiB kept"
held = []
"""

_REFUSED = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def made(result):
    return '1048576 MiB kept' if result != -1 else os.strerror(ctypes.get_errno())
"""

HOARDS = {
    "unix sockets": _HOARD
    + """
def keep():
    held.append(socket.socketpair())
    return sum(fill(end.fileno()) for end in held[-1])
seen = hoard(keep)
""",
    "sockets with larger buffers": _HOARD
    + """
def keep():
    if len(held) == 8: raise OSError('enough')
    held.append(socket.socketpair())
    for end in held[-1]: end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
    return sum(fill(end.fileno()) for end in held[-1])
seen = hoard(keep)
""",
    "sockets in messages": _HOARD
    + """
carriers = [socket.socketpair()]
def keep():
    pair = socket.socketpair()
    filled = sum(fill(end.fileno()) for end in pair)
    carriers[-1][0].setblocking(False)
    try:
        socket.send_fds(carriers[-1][0], [b'x'], [end.fileno() for end in pair])
    except BlockingIOError:
        carriers.append(socket.socketpair())
        socket.send_fds(carriers[-1][0], [b'x'], [end.fileno() for end in pair])
    for end in pair: end.close()
    return filled
seen = hoard(keep, processes=1)
""",
    "connections never accepted": _HOARD
    + """
def keep():
    if not held or held[-1][1] == 120:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f'/tmp/{os.getpid()}-{len(held)}')
        listener.listen(120)
        held.append([listener, 0])
    held[-1][1] += 1
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(held[-1][0].getsockname())
        return fill(end.fileno())
seen = hoard(keep)
""",
    "TCP buffers": _HOARD
    + """
def keep():
    listener = socket.create_server(('127.0.0.1', 0))
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    listener.close()
    held.append((near, far))
    return fill(near.fileno()) + fill(far.fileno())
seen = hoard(keep)
""",
    "pipes": _HOARD
    + """
def keep():
    held.append(os.pipe())
    try: fcntl.fcntl(held[-1][1], 1031, 1 << 20)
    except OSError: pass
    return fill(held[-1][1])
seen = hoard(keep)
""",
    "page tables": _HOARD
    + """
def keep():
    held.append(mmap.mmap(-1, 1 << 36, mmap.MAP_PRIVATE | 0x4000, mmap.PROT_READ))
    for at in range(0, 1 << 36, 2 << 20): held[-1][at]
    return (1 << 36) // (2 << 20) * 4096
seen = hoard(keep, processes=4)
""",
    "locked ranges": _HOARD
    + """
for number in range(200): held.append(open(f'/tmp/lock{number}', 'wb'))
for at in range(2000):
    for file in held: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * at)
seen = '1048576 MiB kept'
""",
    "pages in a pipe": _REFUSED
    + """
reading, writing = os.pipe()
data = ctypes.create_string_buffer(4096)
seen = made(libc.vmsplice(writing, (ctypes.c_void_p * 2)(ctypes.addressof(data), 4096), 1, 0))
""",
    "a file in memory": "import os\nos.memfd_create('x')\nseen = '1048576 MiB kept'",
    "message queues": _REFUSED + "seen = made(max(libc.msgget(0, 0o1600), libc.mq_open(b'/x', 0o102, 0o600, None)))",
    "watches of files": _REFUSED + "seen = made(libc.inotify_init1(0))",
}


def kept_mib(seen: str) -> int:
    """What an attempt says it kept; 0 where it was refused, or its kernel was ended.

    >>> kept_mib("12 MiB kept"), kept_mib("sockets")
    (12, 0)
    """
    return int(seen.split()[0]) if seen.endswith("MiB kept") else 0
