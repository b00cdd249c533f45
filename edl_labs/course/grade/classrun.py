"""Grades a class: several submissions at the same time, each in its own sandbox, with one writer for the gradebook.

Finished work is kept in files named by all that it depends on, so a run that was killed goes on where it was, and a run
with nothing new repeats nothing.
"""

from __future__ import annotations

import fnmatch
import gc
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from edl_labs.course.course_folder import Course
from edl_labs.course.grade.class_kernels import begin_pool
from edl_labs.course.grade.files import copy_exchange_files, is_disk_full, write_atomically
from edl_labs.course.grade.gradebook import Writer, read_timestamp
from edl_labs.course.grade.grader import Grader, Step, slots_that_fit
from edl_labs.course.grade.result import Result, ResultStore, UsingValue
from edl_labs.course.grade.run_record import Usage
from edl_labs.course.grade.student_names import plain_name
from edl_labs.course.grade.submission import Unreadable
from edl_labs.course.sandbox import Level, Limits, best_level
from edl_labs.course.sandbox.kernel.pool import KernelPool
from edl_labs.device import free_bytes, usable_cores
from edl_labs.errors import EdlError, NothingToDo, UsageError
from edl_labs.units import counted
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class StudentRow(UsingValue):
    """One student. `state` is graded, kept (nothing had changed), unreadable or failed.

    `points` are those of the gradebook, with marks given by hand; None without a result.
    """

    student: str
    state: str
    points: float | None = None
    max_points: float | None = None
    flags: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    marks: tuple[tuple[str, float], ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class ClassProgress:
    """How far a class run is. `left_s` is an estimate.

    It is None before the first submission is done, and while all that are left have been at one cell for long.

    `flags`: how many of those that are done have each, in the order of their names; unreadable and failed count too.
    `student` is who was done last; empty before the first.
    """

    done: int
    total: int
    student: str
    elapsed_s: float
    left_s: float | None
    flags: tuple[tuple[str, int], ...] = ()
    slow: tuple[tuple[str, str, float], ...] = ()
    """Cells and checks that have been running for a long time: student, cell or check, and seconds."""

    @property
    def per_minute(self) -> float:
        """Students done a minute, so far."""
        return 60.0 * self.done / self.elapsed_s if self.elapsed_s > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """One line of a log."""
        return {**asdict(self), "flags": dict(self.flags), "per_minute": self.per_minute}


ProgressHook = Callable[[ClassProgress], None]


@dataclass(frozen=True, repr=False)
class ClassReport(Value):
    """A class, graded: one row a student, in order, and `remarks` on the whole run."""

    DERIVED: ClassVar[tuple[str, ...]] = ("exit_code",)
    ROWS: ClassVar[str] = "rows"

    assignment: str
    level: str
    seed: int
    jobs: int
    wall_s: float
    rows: tuple[StudentRow, ...]
    remarks: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 all good; 1 someone could not be graded; 5 tampered with; 6 nothing to do."""
        if not self.rows:
            return 6
        if any(row.state in ("unreadable", "failed") for row in self.rows):
            return 1
        return 5 if any("tampered" in row.flags for row in self.rows) else 0

    def row(self, student: str) -> StudentRow:
        """One student's row."""
        return next(row for row in self.rows if row.student == student)


_SLOW_S = 20.0  # most cells and checks take less than 1 s, the class's solution 10 s; after so long people wonder
_SELDOM = 50_000  # new objects between two looks for garbage, as in the judge; a parsed notebook has about as many
_TRIES = 2  # what is lost by chance, a kernel or a judge, is not lost twice


def grade(
    assignment: str,
    *,
    course: Course | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    only: Sequence[str] = (),
    fresh: bool = False,
    level: Level | None = None,
    limits: Limits | None = None,
    on_gpu: bool = False,
    all_cells: bool | None = None,
    progress: ProgressHook | None = None,
) -> ClassReport:
    """Grade everyone who handed in `assignment`, and put their marks into the gradebook.

    `jobs` submissions compute at a time; without it, as many as there are cores and as fit into free memory. `only`
    are patterns of student names; `seed` draws other secret cases, and is recorded; `fresh` grades again what
    was graded; `all_cells` runs a notebook's demonstrations too; `on_gpu` enters what shards worked out on machines
    with a GPU. NothingToDo when no one handed in.
    """
    course = course or Course.find_class()
    level, limits = level or best_level(), limits or course.limits
    began = time.monotonic()
    with _begun(level, limits, on_gpu=on_gpu) as begun, _gc_relaxed():
        known = course.assignment(assignment)
        students = chosen(course.students(assignment), only)
        if not students:
            why = f"no submission matches {', '.join(only)}" if only else f"no student has submitted {assignment}"
            then = "leave out --only to grade everyone" if only else "run edl-labs collect or nbgrader collect first"
            raise NothingToDo("there is nothing to grade", why=why, next=then)
        fitting = slots_that_fit(free_bytes() or 0, memory_bytes=limits.memory_bytes)
        jobs = max(1, min(jobs or min(usable_cores(), fitting), len(students)))
        rows: dict[str, StudentRow] = {}
        with _explain_full_disk(course, rows, students), _alone(course.grading(assignment)):
            grader = Grader(
                *(course, known),
                seed=seed,
                level=level,
                limits=limits,
                fresh=fresh,
                on_gpu=on_gpu,
                all_cells=all_cells,
                begun=begun,
            )
            grader.results.store.remove_parts()
            with grader:
                _run(grader, Writer(course, known), students, rows, jobs=jobs, progress=progress)
    in_order = tuple(rows[student] for student in students)
    results, wall_s = grader.results, time.monotonic() - began
    remarks = () if results.all_cells else known.remarks
    return ClassReport(assignment, results.level.value, results.draws.seed, jobs, wall_s, in_order, remarks)


@dataclass(frozen=True)
class _Done:
    """What a worker hands to the writer: a result, `kept` if it was there already, or why there is none."""

    student: str
    result: Result | EdlError
    kept: bool = False


@dataclass
class _Queues:
    """Between the workers and the writer; an exception there ends the run."""

    waiting: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    done: queue.SimpleQueue[_Done | BaseException] = field(default_factory=queue.SimpleQueue)


@contextmanager
def _begun(level: Level, limits: Limits, *, on_gpu: bool) -> Iterator[KernelPool | None]:
    """The kernels' parent, which takes longest to start, beside all else; none where GPUs elsewhere grade."""
    if on_gpu:
        yield None
        return
    pool = begin_pool(level, limits)
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def _gc_relaxed() -> Iterator[None]:
    """While active, garbage is looked for seldom: what is imported and what is parsed stays, or goes by its count."""
    before = gc.get_threshold()
    gc.set_threshold(_SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _explain_full_disk(course: Course, rows: Mapping[str, StudentRow], students: Sequence[str]) -> Iterator[None]:
    """EdlError for a disk that is full, wherever it showed: what is kept, and that the run goes on from there."""
    try:
        yield
    except Exception as error:
        if not is_disk_full(error):
            raise
        why = f"the marks of {len(rows)} of {counted(len(students), 'student')} are already in the gradebook"
        then = f"free space on the disk of {course.root.name}/, then run the same command again: it resumes"
        raise EdlError("the disk is full", why=why, next=then) from None


def _run(
    grader: Grader,
    writer: Writer,
    students: list[str],
    rows: dict[str, StudentRow],
    *,
    jobs: int,
    progress: ProgressHook | None,
) -> None:
    """Fill `rows`, by student, in the order in which they are done. The gradebook opens beside the first of them."""
    work = _Queues()
    for student in students:
        work.waiting.put(student)
    hands = min(grader.expect(students, at_once=jobs), len(students))
    threads = [threading.Thread(target=_work, args=(grader, work), daemon=True) for _ in range(hands)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    try:
        with writer:
            last = ""
            while len(rows) < len(students):
                done = _next_done(work, wait_s=_SLOW_S)
                slow = _slow(grader.at_work.values(), time.monotonic())
                if done is not None:
                    rows[done.student] = _entered(grader, writer, done)
                    last = plain_name(done.student)
                if progress is not None and (done is not None or slow):
                    progress(_progress(rows, len(students), last, time.monotonic() - began, slow=slow))
    finally:
        grader.close()
        for thread in threads:
            thread.join(timeout=10)


def _next_done(work: _Queues, *, wait_s: float) -> _Done | None:
    """What is done next; None where nothing is after `wait_s`."""
    try:
        done = work.done.get(timeout=wait_s)
    except queue.Empty:
        return None
    if isinstance(done, BaseException):
        raise done
    return done


def _slow(steps: Iterable[Step], now_s: float) -> tuple[tuple[str, str, float], ...]:
    """The steps that have taken long, the longest first."""
    found = [(plain_name(step.student), step.where, now_s - step.since_s) for step in [*steps]]
    return tuple(sorted((one for one in found if one[2] >= _SLOW_S), key=lambda one: -one[2]))


def _progress(
    rows: Mapping[str, StudentRow],
    total: int,
    student: str,
    elapsed_s: float,
    *,
    slow: tuple[tuple[str, str, float], ...] = (),
) -> ClassProgress:
    done, odd = len(rows), ("unreadable", "failed")
    flags = Counter(flag for row in rows.values() for flag in (*row.flags, *[s for s in odd if s == row.state]))
    # Who hangs may take to the limit: where nobody else is left, the others' rate says nothing of how long that is.
    left_s = elapsed_s / done * (total - done) if done and len(slow) < max(1, total - done) else None
    return ClassProgress(done, total, student, elapsed_s, left_s, (*sorted(flags.items()),), slow)


def _work(grader: Grader, work: _Queues) -> None:
    while not grader.stopping.is_set():
        try:
            student = work.waiting.get_nowait()
        except queue.Empty:
            return
        try:
            work.done.put(_graded(grader, student))
        except BaseException as error:
            work.done.put(error)
            return


def _graded(grader: Grader, student: str) -> _Done:
    """One student's result; trouble of our own is tried again, and is never a student's zero."""
    trouble = EdlError("the run was stopped")
    for _ in range(_TRIES):
        try:
            return _Done(student, *grader.grade(student))
        except Unreadable as unreadable:
            return _Done(student, unreadable)
        except UsageError:
            raise
        except EdlError as error:
            trouble = error
            if grader.stopping.is_set():
                break
    return _Done(student, trouble)


def _entered(grader: Grader, writer: Writer, done: _Done) -> StudentRow:
    if isinstance(done.result, Unreadable):
        told = done.result
        remark = f"{told.what}: {told.why}" if told.why else told.what
        return StudentRow(plain_name(done.student), "unreadable", remarks=(f"{remark}; {told.next}".rstrip("; "),))
    if isinstance(done.result, EdlError):
        return StudentRow(plain_name(done.student), "failed", remarks=(str(done.result),))
    try:
        return _merged(grader, writer, done.student, done.result, "kept" if done.kept else "graded")
    except Exception as error:
        writer.roll_back()
        if is_disk_full(error):
            raise
        return StudentRow(
            done.student, "failed", remarks=(f"could not save the mark in the gradebook: {str(error)[:300]}",)
        )


def _merged(grader: Grader, writer: Writer, student: str, result: Result, state: str) -> StudentRow:
    submitted = grader.course.path("submitted", student=student, assignment=grader.assignment.name)
    timestamp, problem = read_timestamp(submitted)
    late_s = writer.merge(student, result, timestamp=timestamp)
    put_autograded(grader.course, grader.results.store, student, result)
    points, most = writer.total(student)
    flags = (*result.flags, "late") if late_s > 0 else result.flags
    remarks = (*result.notes, *_told(result), *([problem] if problem else []))
    return StudentRow(student, state, points, most, flags, remarks, tuple(result.points.items()), result.usage)


def put_autograded(course: Course, store: ResultStore, student: str, result: Result) -> None:
    """The graded notebook where formgrader and `nbgrader generate_feedback` look for it."""
    folder = course.path("autograded", student=student, assignment=result.assignment)
    path = folder / f"{result.assignment}.ipynb"
    data = store.notebook_path(result.key).read_bytes()
    if not (path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data):
        write_atomically(path, data, mode=0o444, durable=False)
    copy_exchange_files(course.path("submitted", student=student, assignment=result.assignment), folder)


def _told(result: Result) -> Iterable[str]:
    return (f"{event.where}: {event.kind}{f' ({event.why})' if event.why else ''}" for event in result.events)


def chosen(students: list[str], only: Sequence[str]) -> list[str]:
    """The students whose names match one of the patterns `only`; all of them when `only` is empty."""
    if not only:
        return students
    return [student for student in students if any(fnmatch.fnmatchcase(student, pattern) for pattern in only)]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One run of an assignment at a time; the lock goes with the process, however it ends."""
    import fcntl  # of POSIX alone; pages and reports of a graded class are made anywhere

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            why = "another run of the same assignment is active"
            raise UsageError(f"{folder.name} is being graded", why=why, next="wait until it ends, or stop it") from None
        yield
