"""How much one student's submission may take: every limit of grading. A course sets its own in course.toml.

A limit that no honest notebook of the labs comes near costs no marks; a missing limit costs the class its run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30  # as IEC 80000-13 has them
_DAY_S = 86_400.0  # nobody waits longer for one notebook
# The limits that the first results were named by, and those that were the notebook's alone: see `Limits.key`.
_FIRST = (
    "memory_bytes", "processes", "open_files", "file_bytes", "home_bytes", "tmp_bytes", "shm_bytes", "inodes", "cpu_s",
    "threads", "message_bytes", "cell_messages", "cell_bytes", "kept_bytes", "notebook_bytes", "start_s", "grace_s",
)  # fmt: skip
_FIRST_OF_NOTEBOOK = ("cell_s", "notebook_s", "deaths")


def _bytes(default: int, *, least: int, most: int = 1 << 40) -> Any:
    """Above a tebibyte it is a slip of the pen: no machine that grades has as much."""
    return field(default=default, metadata={"least": least, "most": most})


def _seconds(default: float, *, least: float) -> Any:
    """Above a day nobody waits for a notebook."""
    return field(default=default, metadata={"least": least, "most": _DAY_S})


def _number(default: int, *, least: int, most: int = 10_000_000) -> Any:
    """More than ten million of anything are not a limit."""
    return field(default=default, metadata={"least": least, "most": most})


@dataclass(frozen=True)
class Limits:
    """Limits of one submission: what its kernels may hold and say, how long they may take, what is read and kept.

    Reaching a limit of what a kernel holds is an error inside (MemoryError, "No space left on device") where the system
    can say so, and the end of the kernel where it cannot.

    >>> Limits(memory_bytes=1 << 30).memory_bytes
    1073741824
    """

    # What one kernel may hold
    memory_bytes: int = _bytes(3 * GIB, least=128 * MIB)
    """Resident memory of all the kernel's processes together, files in its file systems included. The
    largest kernel of lab01 had 793 MB with torch and plots: four times that, and two workers still fit into 8 GiB."""
    processes: int = _number(256, least=16, most=100_000)
    """Processes and threads together. A kernel with more than a quarter as many processes is ended as a fork bomb."""
    open_files: int = _number(1024, least=64)
    """The usual soft limit of Linux, so that code that works at home also works here."""
    file_bytes: int = _bytes(256 * MIB, least=MIB)
    """Size of one file: as large as the file systems below."""
    home_bytes: int = _bytes(256 * MIB, least=MIB)
    """Size of the home folder, including the labs' data, which takes some tens of megabytes."""
    tmp_bytes: int = _bytes(256 * MIB, least=MIB)
    """Size of /tmp."""
    shm_bytes: int = _bytes(256 * MIB, least=MIB)
    """Size of /dev/shm, through which DataLoader workers pass tensors."""
    sockets: int = _number(2048, least=1024)
    """Sockets of all its processes, including sent and unaccepted ones. Linux keeps up to 208 KiB of unread data
    in each, which no process's memory counts: 436 MB together. A kernel with more is ended. While it starts, a kernel's
    own sockets count as 656."""
    locks: int = _number(1000, least=10)
    """Locked ranges of files: each takes the system's memory. A kernel with more is ended."""
    inodes: int = _number(20_000, least=100)
    """Files and folders in all file systems of the sandbox together, because empty files take memory too."""
    cpu_s: int = _number(1800, least=1, most=int(_DAY_S))
    """CPU seconds of one process: twice the notebook's time, because wall-clock time can miss some computing."""
    threads: int = _number(1, least=1, most=1024)
    """Threads that torch uses within one operation: one, since a class fills the cores with submissions."""

    # What one kernel may say
    message_bytes: int = _bytes(16 * MIB, least=64 * KIB)
    """Bytes kept of one message; the rest is read and dropped. Answers have their own limit."""
    cell_messages: int = _number(50_000, least=100)
    """Messages in one request. An honest cell may show 20,000 displays."""
    cell_bytes: int = _bytes(64 * MIB, least=64 * KIB)
    """Bytes in one request; beyond this, the cell is interrupted, as it is after too many messages."""
    kept_bytes: int = _bytes(2 * MIB, least=KIB)
    """Bytes of output kept of one cell; the rest is read and dropped, and the output says so."""
    notebook_bytes: int = _bytes(512 * MIB, least=64 * KIB)
    """Bytes of all requests to one kernel: eight cells can reach their own limit."""

    # How long it may take
    start_s: float = _seconds(30.0, least=1.0)
    """Time until a kernel answers: normally a tenth of a second, but seconds on a busy machine."""
    grace_s: float = _seconds(2.0, least=0.1)
    """Time between interrupting a cell that timed out and killing its kernel."""
    cell_s: float = _seconds(120.0, least=1.0)
    """Time for one cell. All cells and checks of lab01 take 3 s together, so a slow machine is fast enough."""
    probe_s: float = _seconds(900.0, least=1.0)
    """Time for one probe. An exercise's own `timeout_s` takes precedence if it is shorter, as in all labs."""
    notebook_s: float = _seconds(900.0, least=1.0)
    """Time for all cells and probes of one submission, so that two workers grade a class of 100 in one night."""
    deaths: int = _number(12, least=0, most=1000)
    """How many times its kernel may die and be replaced: about once for each exercise of a lab."""
    calls: int = _number(200_000, least=100)
    """Calls in one probe to the reference of a wrong exercise; the labs' own solutions make up to 20,000."""
    calls_bytes: int = _bytes(256 * MIB, least=KIB)
    """Bytes of the arguments and results of these calls together."""
    calls_s: float = _seconds(60.0, least=1.0)
    """Time that the reference may take for them, outside the kernel; one call takes microseconds."""
    judge_s: float = _seconds(30.0, least=1.0)
    """Computing time of one judgement, outside the kernel: a comparison takes milliseconds, a long replay a second.
    Waiting for a core does not count, but ten times as much wall-clock time always ends it."""

    draws: int = _number(8, least=1, most=64)
    """Draws of secret cases of a class; student and submission determine which one counts. What is learned about one
    helps in one of eight resubmissions, and each costs one run of the solution. A class keeps its first number."""

    # What is read, probed and kept of it
    evidence_bytes: int = _bytes(8 * MIB, least=KIB, most=64 * MIB)
    """Bytes of one probe's answer. A lab's public cases and expected evidence take less than 1 MB; with 32 MiB, hostile
    evidence cost the judge half a minute for each check."""
    judge_bytes: int = _bytes(GIB, least=256 * MIB)
    """Memory of the judge: enough for the largest evidence, decoded and copied, and for the library."""
    submission_bytes: int = _bytes(128 * MIB, least=64 * KIB)
    """Size of the submitted file. With plots it has some megabytes; outputs are skipped without being read."""
    lenient_bytes: int = _bytes(16 * MIB, least=KIB)
    """Size of a file that is not strict JSON: Python's lenient reader needs many times its size in memory."""
    submission_cells: int = _number(2_000, least=10)
    """Number of cells of a notebook; the labs have up to 93."""
    source_bytes: int = _bytes(512 * KIB, least=KIB)
    """Characters of all cells together; the largest lab, lab04, has 54,617 as released and 61,226 solved."""
    attachment_bytes: int = _bytes(16 * MIB, least=KIB)
    """Size of all pictures in prose together; if they are larger, they are left out, with a note."""
    shown_bytes: int = _bytes(8 * MIB, least=KIB)
    """Bytes of outputs in the graded notebook, which formgrader and the feedback page show in a browser."""
    shown_lines: int = _number(1000, least=10)
    """Lines of one output in the graded notebook; nbgrader's own LimitOutput has the same number."""

    def key(self) -> str:
        """A text that is equal exactly for equal limits, for the names of results.

        Limits that are settable only since later count where they are set, so that earlier results keep their names.
        """
        kernel, notebook = ({name: getattr(self, name) for name in names} for names in (_FIRST, _FIRST_OF_NOTEBOOK))
        apart = (*_FIRST, *_FIRST_OF_NOTEBOOK, "draws")  # the draw that counts stands in a result's name itself
        others = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in apart}
        added = {name: value for name, value in others.items() if value != getattr(DEFAULTS, name)}
        return repr((kernel, notebook)) + (repr(added) if added else "")


DEFAULTS = Limits()
