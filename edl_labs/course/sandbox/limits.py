"""How much one student's notebook may take."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Limits:
    """Limits of one sandboxed kernel: what it may hold, what it may say, how long it may take.

    Reaching a limit of what it holds is an error inside (MemoryError, "No space left on device") where the system
    can say so, and the end of the kernel where it cannot.

    >>> Limits(memory_bytes=1 << 30).memory_bytes
    1073741824
    """

    memory_bytes: int = 3 * GIB
    """Resident memory of all the kernel's processes together, files in its file systems included."""
    processes: int = 256
    """Processes and threads, all together. With a quarter as many processes it is ended, as a fork bomb."""
    open_files: int = 1024
    file_bytes: int = 256 * MIB
    """Size of one file."""
    home_bytes: int = 256 * MIB
    tmp_bytes: int = 256 * MIB
    shm_bytes: int = 256 * MIB
    """Size of /dev/shm, through which DataLoader workers pass tensors."""
    inodes: int = 20_000
    """Files and folders, all file systems of the sandbox together: empty files take memory too."""
    cpu_s: int = 1800
    """CPU seconds of one process."""
    threads: int = 1
    """Threads that torch uses within one operation."""

    message_bytes: int = 16 * MIB
    """Most that is kept of one message; the rest is read and dropped. Answers have a limit of their own."""
    cell_messages: int = 50_000
    """Messages in one request. 20,000 displays are honest."""
    cell_bytes: int = 64 * MIB
    """Bytes in one request; above, the cell is interrupted, as it is above the number of messages."""
    kept_bytes: int = 2 * MIB
    """Bytes of output kept of one cell; the rest is read and dropped, and the output says so."""
    notebook_bytes: int = 512 * MIB

    start_s: float = 30.0
    grace_s: float = 2.0
    """From interrupting a cell that is over its time to killing its kernel."""
