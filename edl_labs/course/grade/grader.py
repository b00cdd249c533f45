"""Grades submissions of one assignment, and keeps what was graded under a name that says all it depends on.

Kernels import before the first student what the assignment's notebook does, and no more: each module is imported once
for the class instead of once a submission.
"""

from __future__ import annotations

import ast
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from edl_labs.checks import Exercise
from edl_labs.course.assignment import Assignment
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.broken_cells import tell_broken_cells
from edl_labs.course.grade.graded_notebook import graded_notebook
from edl_labs.course.grade.judge_process import FreeJudge, Judge, Judged
from edl_labs.course.grade.mark import Examiner
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.probe_run import PlanRunner
from edl_labs.course.grade.reference import reference
from edl_labs.course.grade.reference_process import ReferenceProcess
from edl_labs.course.grade.result import Result, ResultStore, make_result, result_key
from edl_labs.course.grade.run_record import Usage
from edl_labs.course.grade.secret_cases import ClassSecrets, SecretCases, class_draws
from edl_labs.course.grade.student_names import check_folder
from edl_labs.course.grade.submission import Submission, read_submission
from edl_labs.course.groups import read_groups
from edl_labs.course.sandbox import Level, Limits, best_level
from edl_labs.course.sandbox.kernel.client import SandboxKernel
from edl_labs.course.sandbox.kernel.exchange import KernelDied, Violation
from edl_labs.course.sandbox.kernel.pool import KernelPool
from edl_labs.device import usable_cores
from edl_labs.errors import EdlError, UsageError

# Imported whether or not the text asks for them: the library does, where it measures or draws.
ALWAYS = ("edl_labs", "numpy", "torch", "matplotlib.pyplot", "ipywidgets")
# What torch imports when a process makes its first optimizer: 900 modules, 1.5 s of processor time each time.
BEHIND_OPTIMIZERS = "torch._dynamo"
# Others of a student's kernel that may be imported before a fork: they start no thread.
_FORKABLE = ("torchvision", "scipy", "pandas", "PIL", "tqdm")
_MANY = 1 << 20  # as many as ask, where nobody has said how many at a time
_SLEEPERS = 5  # submissions in hand for each that computes, where checks sleep
_LOOKED_AT = 4  # submissions for each draw: with so many, 98 of 100 draws have been asked for
_PACKAGE = Path(__file__).resolve().parents[2]
_PROBES = ("edl_labs.checks", "edl_labs.checks._check", "edl_labs.checks.evidence", "edl_labs.checks.caught_output")


def free_bytes() -> int:
    """Memory that this machine could give to new processes."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)


@contextmanager
def released(turn: threading.Semaphore) -> Iterator[None]:
    """While active, somebody else may have the turn that the caller has."""
    turn.release()
    try:
        yield
    finally:
        turn.acquire()


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


@dataclass(frozen=True)
class Step:
    """What is being done with a submission, and since when by the monotonic clock."""

    student: str
    where: str
    since_s: float


class Grader:
    """Grades submissions of one assignment; threads may share it. The sandbox starts when it is first needed, if it has
    not `begun`.

    `gpu` is the number of the one GPU that kernels see; none see any otherwise. `on_gpu` without it finds what was
    graded on a GPU elsewhere, and grades nothing. `seed` has one draw for everybody, or `draws` of them; without it the
    class's own count. `all_cells` runs demonstrations too; without it, as course.toml says.
    `begun` is of `begin_pool`, with the same level and limits.
    """

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        *,
        seed: int | None = None,
        draws: int | None = None,
        level: Level | None = None,
        limits: Limits | None = None,
        fresh: bool = False,
        gpu: int | None = None,
        on_gpu: bool = False,
        all_cells: bool | None = None,
        begun: KernelPool | None = None,
    ) -> None:
        for exercise in assignment.exercises:
            exercise.drawing()  # an install without the judge's parts says so before anything starts
        self.course, self.assignment, self.fresh, self._gpu = course, assignment, fresh, gpu
        self.on_gpu = on_gpu or gpu is not None
        self.all_cells = course.all_cells if all_cells is None else all_cells
        self.level, self.limits = level or best_level(), limits or course.limits
        self.folder = course.grading(assignment.name)
        count = draws or (self.limits.draws if seed is None else 1)
        self.groups = read_groups(course.root, assignment.name)
        self.draws = class_draws(self.folder, seed=seed, count=count)
        self.store = ResultStore(self.folder / "results")
        self._lock, self._drawing, self._starting = threading.Lock(), threading.Lock(), threading.Lock()
        self._local = threading.local()
        self._pool: KernelPool | None = None
        self._begun = begun
        self._no_pool: UsageError | None = None
        self._known: dict[bytes, Judged] = {}
        self._shared: dict[int, ClassSecrets] = {}
        self._requests: dict[int, dict[str, bytes]] = {}
        self._judges: list[Judge | ReferenceProcess] = []
        self._free: list[Judge] = []
        self._tried: list[SandboxKernel] = []
        self._drawer: Judge | None = None
        self._solutions, self._at_once = threading.Semaphore(usable_cores()), threading.Semaphore(_MANY)
        self.stopping = threading.Event()
        self.at_work: dict[int, Step] = {}
        """By thread, the cell or check that is being run for a student."""

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every kernel and judge."""
        with self._lock:
            self.stopping.set()
        for pool in (self._pool, self._begun):
            if pool is not None:
                pool.close()
        for judge in self._judges:
            judge.close()

    def grade(self, student: str) -> tuple[Result, bool]:
        """One student's result, and whether it was there already. Unreadable is all that a student can bring about."""
        submission = self._submission(student)
        key, draw = self.key(submission, student), self._draw(submission, student)
        stored = None if self.fresh else self._kept(submission, student, all_cells=self.all_cells)
        if stored is not None:
            return stored, True
        self._local.student = student
        try:
            with self._at_once:
                return self._graded(submission, key, draw), False
        finally:
            self.at_work.pop(threading.get_ident(), None)

    def _submission(self, student: str) -> Submission:
        check_folder(student)
        folder = self.course.path("submitted", student=student, assignment=self.assignment.name)
        return read_submission(folder, self.assignment.name, limits=self.limits)

    def _graded(self, submission: Submission, key: str, draw: int) -> Result:
        examiner = self._examiner(draw)
        began, judged_s = time.monotonic(), examiner.judge.cpu_s
        plan = make_plan(self.assignment, submission)
        run = examiner.grade(plan, all_cells=self.all_cells)
        tell_broken_cells(plan, run, limits=self.limits)
        run.usage += Usage(wall_s=time.monotonic() - began, judge_cpu_s=examiner.judge.cpu_s - judged_s)
        result = make_result(
            key, self.assignment.name, self.level.value, plan=plan, run=run, trusted=self.level.trusted, draw=draw
        )
        if self.stopping.is_set():
            raise EdlError("the run was stopped")
        self.store.save(result, graded_notebook(self.assignment, plan, run, limits=self.limits))
        return result

    def _watch(self, where: str) -> None:
        self.at_work[threading.get_ident()] = Step(self._local.student, where, time.monotonic())

    @property
    def seed(self) -> int:
        """What the class's draws are made from."""
        return self.draws.seed

    def stored(self, submission: Submission, student: str, *, all_cells: bool = False) -> Result | None:
        """The result of a submission, if it was graded as it would be now; nothing is graded.

        One of all cells comes first. With `all_cells` no other counts.
        """
        found = self._kept(submission, student, all_cells=True)
        return found if found or all_cells else self._kept(submission, student, all_cells=False)

    def graded(self, submission: Submission, student: str) -> Result | None:
        """The result of a submission on whatever machine it was graded, the best fenced first; nothing is graded.

        For who reads results: this machine may fence in students' code better than that one could, or not at all.
        """
        keys = (
            self.key(submission, student, all_cells=all_cells, level=level, on_gpu=on_gpu)
            for level in Level
            for on_gpu in (self.on_gpu, not self.on_gpu)
            for all_cells in (True, False)
        )
        return next(filter(None, map(self.store.load, keys)), None)

    def _kept(self, submission: Submission, student: str, *, all_cells: bool) -> Result | None:
        """One of all cells serves where they were not asked for, too."""
        found = None if all_cells else self.store.load(self.key(submission, student, all_cells=False))
        return found or self.store.load(self.key(submission, student, all_cells=True))

    def prepare(self) -> None:
        """Work out the secret cases and the solution's evidence, so that others who share the folder need not."""
        for draw in range(self.draws.count):
            self._secrets(draw).wait()

    def new_kernel(self, modules: Mapping[str, bytes] = MappingProxyType({})) -> SandboxKernel:
        """A fresh kernel with what is beside the released notebook, and a student's own `modules`."""
        return self.pool().kernel(files={**modules, **self.assignment.files})

    def _solutions_kernel(self) -> SandboxKernel:
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
        if self.stopping.is_set():
            raise EdlError("the run was stopped")
        pool = self._new_pool()
        try:
            self._try(pool)
            if self.stopping.is_set():
                raise EdlError("the run was stopped")
        except BaseException:
            pool.close()
            raise
        return pool

    def _try(self, pool: KernelPool) -> None:
        """UsageError, once and at the start, when kernels cannot import what probes need: nobody could be graded."""
        lab = "" if self.assignment.own_exercises else self.assignment.name
        try:
            kernel = pool.kernel(files=self.assignment.files)
            said = kernel.ask(_IMPORTS, lab.encode(), timeout_s=self.limits.cell_s).decode("utf-8", "replace")
            self._tried.append(kernel)  # no student's code has run in it, and the solution may
        except (KernelDied, Violation) as end:
            said = str(end)
        if said:
            raise UsageError(
                "students' kernels cannot import edl_labs",
                why=said[:500],
                next="install edl-labs and what it needs into this environment itself, then: edl-labs doctor --sandbox",
            )

    def _new_pool(self) -> KernelPool:
        if self.on_gpu and self._gpu is None:
            why = "this class is graded on GPUs, and none was leased here"
            raise EdlError(
                "the submission was not graded", why=why, next="grade again with the same --backend and --gpus"
            )
        preload, begun = preload_of(self.assignment), self._begun
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
                return KernelPool(level=self.level, limits=self.limits, preload=names, gpu=self._gpu)
        return KernelPool(level=self.level, limits=self.limits, gpu=self._gpu)

    def _examiner(self, draw: int = 0) -> Examiner:
        """This thread's own, for the secret cases of one draw."""
        examiner: Examiner | None = getattr(self._local, "examiner", None)
        judge, solution = self._judging()
        secrets = self._secrets(draw)
        if examiner is None or examiner.secrets is not secrets:
            runner = PlanRunner(self.assignment, self.new_kernel, self.limits, self._watch, self._asleep)
            examiner = self._local.examiner = Examiner(
                runner, secrets, judge, solution, self._requests.setdefault(draw, {})
            )
        return examiner

    def _judging(self) -> tuple[FreeJudge, ReferenceProcess]:
        """This thread's own way to a judge's process, and its solution."""
        found: tuple[FreeJudge, ReferenceProcess] | None = getattr(self._local, "judging", None)
        if found is None:
            solution = ReferenceProcess(self.assignment, self.limits)
            found = self._local.judging = (FreeJudge(self._free, self._new_judge), solution)
            with self._lock:
                self._judges.append(solution)
        return found

    def _new_judge(self) -> Judge:
        """One that starts while its caller goes on, and knows what all others judged."""
        lab = "" if self.assignment.own_exercises else self.assignment.name
        judge = Judge(self.limits, lab=lab, known=self._known)
        with self._lock:
            if self.stopping.is_set():
                raise EdlError("the run was stopped")
            self._judges.append(judge)
        judge.launch()
        return judge

    def expect(self, students: Iterable[str], *, at_once: int) -> int:
        """Begin with what the first of `students` will ask for: while the kernels' parent starts, cases are drawn.

        From now on `at_once` submissions compute at a time, and as many solutions: how many threads keep them busy.
        """
        self._solutions, self._at_once = threading.Semaphore(at_once), threading.Semaphore(at_once)
        if self._prefetch(students):
            self._free.append(self._new_judge())
        if not any(exercise.sleeps for exercise in self.assignment.exercises):
            return at_once
        room = free_bytes() // self.limits.memory_bytes  # for kernels that take all that they may
        return max(at_once, min(at_once * _SLEEPERS, room))

    def _prefetch(self, students: Iterable[str]) -> bool:
        """Have drawn what the first students will ask for; whether anything will be."""
        draws: set[int] = set()
        for student in islice(students, _LOOKED_AT * self.draws.count):
            with suppress(EdlError):
                submission = self._submission(student)
                if self.fresh or self._kept(submission, student, all_cells=self.all_cells) is None:
                    draws.add(draw := self._draw(submission, student))
                    self._secrets(draw)
            if len(draws) == self.draws.count:
                break
        return bool(draws)

    def _asleep(self) -> AbstractContextManager[None]:
        """While active, another thread's submission may compute in place of this one's."""
        return released(self._at_once)

    def _secrets(self, draw: int) -> ClassSecrets:
        """The secret cases of a draw with the solution's evidence, worked out beside its first submissions."""
        with self._lock:
            if draw not in self._shared or self._shared[draw].failed:
                self._shared[draw] = ClassSecrets(lambda: self._reference(self.draws.seed_of(draw)))
            return self._shared[draw]

    def _reference(self, seed: int) -> dict[str, SecretCases]:
        solutions = self._solutions
        runner = PlanRunner(self.assignment, self._solutions_kernel, self.limits, asleep=lambda: released(solutions))
        folder = self.folder / "references"
        return reference(runner, seed=seed, folder=folder, on_gpu=self.on_gpu, draw=self._drawn, turn=solutions)

    def _drawn(self, exercise: Exercise, seed: int) -> bytes:
        """Cases from the one process that draws: threads come one after the other."""
        with self._drawing:
            if self._drawer is None:
                self._drawer = self._new_judge()
            return self._drawer.draw(exercise, seed)

    def _draw(self, submission: Submission, student: str) -> int:
        """The draw that counts; a group's members have one, so that equal work gets equal marks."""
        return self.draws.number(self.groups.named(student), submission.digest)

    def key(
        self,
        submission: Submission,
        student: str,
        *,
        all_cells: bool | None = None,
        level: Level | None = None,
        on_gpu: bool | None = None,
    ) -> str:
        """The name of a submission's result; where not `all_cells` were asked for, it has another one."""
        asked = self.all_cells if all_cells is None else all_cells
        on_gpu = self.on_gpu if on_gpu is None else on_gpu
        limits = self.limits.key() + ("/gpu" if on_gpu else "") + ("" if asked else "/needed")
        seed, fence = self.draws.seed_of(self._draw(submission, student)), level or self.level
        return result_key(submission.digest, self.assignment.digest, seed=seed, level=fence.value, limits=limits)
