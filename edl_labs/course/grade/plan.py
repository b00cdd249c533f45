"""Plans from a student's cells what runs and where exercises are probed, and notes what was unusual.

The instructor's text stands in for every locked cell, check cells never run, lost cells are put back, and of two copies
of a cell the one with work in it counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edl_labs.course.assignment import PARAMETERS, Assignment, KnownCell
from edl_labs.course.grade.answers_elsewhere import Copied, elsewhere, is_copy, may_answer, not_released, unused
from edl_labs.course.grade.other_lab import refuse_other_lab
from edl_labs.course.grade.stray_answers import TypedCell, find_answer, new_lines, with_prose
from edl_labs.course.grade.submission import OtherFile, Submission, SubmittedCell, Unreadable, parse
from edl_labs.course.sandbox.limits import DEFAULTS, Limits


@dataclass(frozen=True)
class Note:
    """One odd thing about a submission. `tampered`: a locked part is not what was released."""

    text: str
    exercise: str = ""
    tampered: bool = False
    mends: bool = True
    """Whether the graded notebook differs from the submitted notebook."""


@dataclass(frozen=True)
class PlannedCell:
    """A cell of the graded notebook. `known` is the released cell that it stands for, if any."""

    kind: str
    source: str
    known: KnownCell | None = None
    runs: bool = False
    probes: str = ""
    """The exercise that is probed at this cell."""
    keeps_id: bool = False
    """Whether this one, of several copies, is the cell that nbgrader grades."""
    attachments: Mapping[str, dict[str, str]] | None = None
    outputs: bytes = b""
    """The outputs that were submitted with it, as JSON that was not checked."""
    settings: str = ""
    """Assignments to names that it binds, which run after it: the parameters of a quick run."""

    @property
    def is_demonstration(self) -> bool:
        """Whether it is a released cell that is unchanged, and for which the lab declares no role."""
        known = self.known
        if not self.runs or known is None or known.role or known.lab_role:
            return False
        return known.is_released(self.source)

    @property
    def runs_as(self) -> str:
        """The text that runs."""
        return f"{self.source}\n{self.settings}" if self.settings else self.source


@dataclass(frozen=True)
class MarkingPlan:
    """The cells in the student's order, lost ones put back, and notes."""

    cells: tuple[PlannedCell, ...]
    notes: tuple[Note, ...]
    modules: Mapping[str, bytes] = field(default_factory=dict)
    """The student's own Python files, which the cells may import."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Recordings next to the notebook, which only the judge reads."""

    @property
    def tampered(self) -> bool:
        """Whether a locked part was changed or forged."""
        return any(note.tampered for note in self.notes)

    def is_secret(self, index: int) -> bool:
        """Whether the cell runs after a probe: its output may be secret cases that the code kept."""
        return any(cell.probes for cell in self.cells[:index])

    def until(self, exercise: str) -> MarkingPlan:
        """The cells up to the last check of `exercise`, probed at its checks alone."""
        last = max((index for index, cell in enumerate(self.cells) if cell.probes == exercise), default=-1)
        cells = self.cells[: last + 1]
        kept = (replace(cell, probes=exercise if cell.probes == exercise else "") for cell in cells)
        return replace(self, cells=tuple(kept))

    def unchecked(self, exercises: Collection[str]) -> MarkingPlan:
        """The same cells, without the checks of `exercises`."""
        cells = (replace(cell, probes="") if cell.probes in exercises else cell for cell in self.cells)
        return replace(self, cells=tuple(cells))

    def without(self, exercises: Collection[str]) -> MarkingPlan:
        """The same cells, of which those that answer `exercises` do not run."""
        cells = (
            replace(c, runs=False) if c.known and c.known.role == "solve" and c.known.exercise in exercises else c
            for c in self.cells
        )
        return replace(self, cells=tuple(cells))

    def untouched(self) -> tuple[str, ...]:
        """nbgrader's ids of the solve and answer cells that are as they were released."""
        kept = (c for c in self.cells if c.keeps_id and c.known and c.known.role in ("solve", "answer"))
        return tuple(c.known.grade_id for c in kept if c.known and c.known.is_untouched(c.source))

    def answered(self, role: str) -> dict[str, PlannedCell]:
        """The cells of a role, solve or answer, that the student changed, by exercise."""
        found = {c.known.exercise: c for c in self.cells if c.keeps_id and c.known and c.known.role == role}
        return {name: c for name, c in found.items() if c.known and not c.known.is_untouched(c.source)}

    def texts_until(self, exercise: str) -> list[str]:
        """The texts of the cells that run before the last check of an exercise, in order."""
        return [cell.source for cell in self.until(exercise).cells if cell.runs]

    def answers(self) -> dict[str, str]:
        """The prose of each exercise that a person marks."""
        return {c.known.exercise: c.source for c in self.cells if c.keeps_id and c.known and c.known.role == "answer"}


def make_plan(assignment: Assignment, submission: Submission) -> MarkingPlan:
    """How a submission is graded. Unreadable when it is another lab's notebook."""
    refuse_other_lab(assignment, submission)
    planner = _Planner(assignment, submission)
    planner.place_all()
    planner.restore_missing()
    planner.check_below_answers()
    planner.gather_answers()
    planner.look_elsewhere(not_released(assignment, submission.others))
    notes = (*(Note(text) for text in submission.notes), *planner.notes)
    return MarkingPlan(tuple(planner.cells), notes, submission.modules, submission.files)


def count_answers(assignment: Assignment, notebook: bytes, *, limits: Limits = DEFAULTS) -> int:
    """How many exercises are answered in a notebook file; 0 for what is no copy of the lab."""
    try:
        submission = parse(notebook, limits=limits)
        if not is_copy(assignment, OtherFile("", len(notebook), submission.cells, submission.lab)):
            return 0
        plan = make_plan(assignment, submission)
    except Unreadable:
        return 0
    return len(plan.answered("solve")) + len(plan.answered("answer"))


def solution_plan(assignment: Assignment) -> MarkingPlan:
    """The plan of the instructor's own solution."""
    cells = tuple(SubmittedCell(c.kind, c.id, c.solution, c.grade_id) for c in assignment.cells)
    return make_plan(assignment, Submission(cells))


@dataclass
class _Planner:
    assignment: Assignment
    submission: Submission
    cells: list[PlannedCell] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._claims = self._claimed()
        self._copies: dict[str, list[int]] = {}
        for index, known in enumerate(self._claims):
            if known is not None:
                self._copies.setdefault(known.id, []).append(index)
        self._chosen = {key: self._choice(indices) for key, indices in self._copies.items()}

    def place_all(self) -> None:
        """Every submitted cell, in order."""
        for index, (cell, known) in enumerate(zip(self.submission.cells, self._claims, strict=True)):
            place = {"solve": self._solve, "check": self._check, "answer": self._answer, "locked": self._locked}
            if known is None or not known.role:
                self._plain(cell, known)
            else:
                place[known.role](index, cell, known)
        for key, indices in self._copies.items():
            if len(indices) > 1:
                known = next(c for c in self.assignment.cells if c.id == key)
                self.notes.append(Note(f"{_called(known)} occurs {len(indices)} times", known.exercise))

    def restore_missing(self) -> None:
        """Released cells that the submission lacks, each after the one that it followed."""
        ids_kept = any(cell.id in {c.id for c in self.assignment.cells} for cell in self.submission.cells)
        for position, known in enumerate(self.assignment.cells):
            if known.id in self._copies or not (known.role or (ids_kept and known.kind == "code")):
                continue
            if not known.role and any(known.is_released(c.source) for c in self.submission.cells):
                continue
            runs = known.kind == "code" and not known.role
            probes = known.exercise if known.role == "check" else ""
            settings = self._settings(known)
            lost = PlannedCell(
                known.kind, known.source, known, runs=runs, probes=probes, keeps_id=True, settings=settings
            )
            self.cells.insert(self._after(position, known), lost)
            self.notes.append(Note(f"{_called(known)} was missing and was restored", known.exercise))

    def check_below_answers(self) -> None:
        """A check above the work it looks at, or above what that builds on, goes below it.

        Cells are easily dragged; run from the top, such a check would find nothing where all is there. What the release
        itself has below a check stays there.
        """
        released = {known.id: position for position, known in enumerate(self.assignment.cells)}
        for exercise in [cell.probes for cell in self.cells if cell.probes]:
            check = next(i for i, c in enumerate(self.cells) if c.probes == exercise)
            worked = (self._worked(name) for name in {exercise, *self.assignment.built_on(exercise)})
            last = max((indices[-1] for indices in worked if indices and indices[0] > check), default=-1)
            if last > check and released[self._claim(last).id] < released[self._claim(check).id]:
                self.cells.insert(last, self.cells.pop(check))
                text = f"the check of {exercise} was above {_called(self._claim(last - 1))}, and was run below it"
                self.notes.append(Note(text, exercise))

    def gather_answers(self) -> None:
        """Prose that was typed outside its answer's cell is copied into it, so that a person reads and marks it."""
        typed = [TypedCell(c.kind, c.source, c.known, c.attachments, self._is_lost(c)) for c in self.cells]
        if any(one.is_empty_answer for one in typed):
            typed = with_prose(typed, self.assignment.cells)
        for index, cell in enumerate(self.cells):
            found = find_answer(typed, index, self.assignment.cells) if cell.keeps_id else None
            if found is not None:
                self.cells[index] = replace(cell, source=found.source, attachments=found.attachments)
                text = f"{_called(self._claim(index))} was found outside its cell, and was copied into it"
                self.notes.append(Note(text, self._claim(index).exercise))

    def look_elsewhere(self, others: Sequence[OtherFile]) -> None:
        """An empty answer shows what else was handed in, so that a person marks it; code in another copy is named.

        Another copy of the lab is read as this one is; of any other file a person decides whether it is the answer.
        """
        copies = {other.name: self._plan_of(other) for other in others if is_copy(self.assignment, other)}
        rest = [other for other in others if other.name not in copies and may_answer(self.assignment, other)]
        if now := [other for other in others if not other.is_earlier]:
            self.notes.append(Note(unused(now), mends=False))
        for name, copy in copies.items():
            done = set(copy.answered("solve")) - set(self._so_far().answered("solve"))
            texts = {one: f"the cell of {one} is empty here; the answer in {name} is not used" for one in sorted(done)}
            self.notes += [Note(text, one, mends=False) for one, text in texts.items()]
        for index, cell in enumerate(self.cells):
            known = cell.known
            if known is None or known.role != "answer" or not cell.keeps_id or not known.is_untouched(cell.source):
                continue
            answers = ((name, copy.answered("answer").get(known.exercise)) for name, copy in copies.items())
            copied = [Copied(name, one.source, one.attachments) for name, one in answers if one]
            if copied or rest:
                found = elsewhere(known.exercise, copied, rest)
                self.cells[index] = replace(cell, source=found.source, attachments=found.attachments)
                self.notes.append(Note(found.remark, known.exercise))

    def _plan_of(self, other: OtherFile) -> MarkingPlan:
        return make_plan(self.assignment, Submission(other.cells, lab=other.lab))

    def _so_far(self) -> MarkingPlan:
        return MarkingPlan(tuple(self.cells), ())

    def _is_lost(self, cell: PlannedCell) -> bool:
        return cell.known is not None and cell.known.id not in self._copies

    def _worked(self, exercise: str) -> list[int]:
        """Where the cells stand in which somebody wrote an answer to `exercise`."""
        solving = ((i, c.known) for i, c in enumerate(self.cells) if c.known and c.known.role == "solve")
        mine = (i for i, known in solving if known.exercise == exercise)
        return [i for i in mine if not self._claim(i).is_untouched(self.cells[i].source)]

    def _claim(self, index: int) -> KnownCell:
        """The released cell that a planned one stands for; it has one."""
        known = self.cells[index].known
        assert known is not None
        return known

    def _claimed(self) -> list[KnownCell | None]:
        """The released cell that each submitted one stands for: by nbgrader's id, then by cell id, then by its text."""
        by_id = {cell.id: cell for cell in self.assignment.cells}
        claims = [self.assignment.by_grade_id.get(cell.grade_id) for cell in self.submission.cells]
        taken = {known.id for known in claims if known}
        for index, cell in enumerate(self.submission.cells):
            if cell.grade_id and claims[index] is None:
                text = f"cell {index + 1} claims to be {cell.grade_id[:60]!r}, which was never released"
                self.notes.append(Note(text, tampered=True))
            known = by_id.get(cell.id) or self._by_text(cell)
            if claims[index] is None and known is not None and known.id not in taken:
                claims[index] = known
                taken.add(known.id)
        return claims

    def _by_text(self, cell: SubmittedCell) -> KnownCell | None:
        """A check or locked cell that lost its metadata and kept its text."""
        locked = (c for c in self.assignment.cells if c.role in ("check", "locked"))
        return next((c for c in locked if c.is_released(cell.source)), None)

    def _choice(self, indices: list[int]) -> int:
        """Of several copies, the last one with work in it; the last of all when none has any."""
        known = self._claims[indices[-1]]
        if known is None or known.role not in ("solve", "answer"):
            return indices[-1]
        worked = [i for i in indices if not known.is_untouched(self.submission.cells[i].source)]
        return (worked or indices)[-1]

    def _plain(self, cell: SubmittedCell, known: KnownCell | None) -> None:
        settings = self._settings(known) if known is not None and known.is_released(cell.source) else ""
        planned = PlannedCell(cell.kind, cell.source, known, attachments=cell.attachments, outputs=cell.outputs)
        self.cells.append(replace(planned, runs=cell.kind == "code", settings=settings))

    def _settings(self, known: KnownCell) -> str:
        """What is set after the parameters cell as it was released; who changed it gets what they wrote."""
        if known.id != PARAMETERS or known.kind != "code":
            return ""
        return "\n".join(f"{name} = {value!r}" for name, value in self.assignment.parameters.items())

    def _solve(self, index: int, cell: SubmittedCell, known: KnownCell) -> None:
        """Copies run too, in order, but a copy left as it was released does not undo the work in another."""
        chosen = index == self._chosen[known.id]
        if cell.kind != "code":
            self.notes.append(
                Note(f"{_called(known)} was turned into a {cell.kind} cell; it is read as code", known.exercise)
            )
        runs = chosen or not known.is_untouched(cell.source)
        self.cells.append(PlannedCell("code", cell.source, known, runs=runs, keeps_id=chosen, outputs=cell.outputs))

    def _check(self, index: int, cell: SubmittedCell, known: KnownCell) -> None:
        if not known.is_released(cell.source) or cell.kind != "code":
            self.notes.append(
                Note(f"{_called(known)} was changed; the released text ran instead", known.exercise, True)
            )
        chosen = index == self._chosen[known.id]
        probes = known.exercise if chosen else ""
        self.cells.append(PlannedCell("code", known.source, known, probes=probes, keeps_id=chosen))
        self._keep_typed(cell, known)

    def _answer(self, index: int, cell: SubmittedCell, known: KnownCell) -> None:
        chosen = index == self._chosen[known.id]
        planned = PlannedCell("markdown", cell.source, known, keeps_id=chosen, attachments=cell.attachments)
        self.cells.append(planned)

    def _locked(self, index: int, cell: SubmittedCell, known: KnownCell) -> None:
        if not known.is_released(cell.source):
            self.notes.append(Note(f"{_called(known)} was changed and was restored", known.exercise, True))
        chosen = index == self._chosen[known.id]
        runs = known.kind == "code"
        self.cells.append(
            PlannedCell(known.kind, known.source, known, runs=runs, keeps_id=chosen, outputs=cell.outputs)
        )
        self._keep_typed(cell, known)

    def _keep_typed(self, cell: SubmittedCell, known: KnownCell) -> None:
        """What a student wrote in a cell that was restored goes below it, where a person can read it; it never runs."""
        typed = new_lines(cell.source, known.source)
        if typed:
            self.cells.append(PlannedCell(cell.kind, typed, attachments=cell.attachments))

    def _after(self, position: int, known: KnownCell) -> int:
        """Where a lost cell goes: after the nearest cell before it in the release that is still there.

        A check goes to the end of the notebook when its solve cell is lost too: its function may be anywhere.
        """
        if known.role == "check":
            solve = self.assignment.by_grade_id.get(known.exercise)
            if solve is None or solve.id not in self._copies:
                return len(self.cells)
        places = {c.known.id: i for i, c in enumerate(self.cells) if c.known}  # of several copies the last
        return next((places[c.id] + 1 for c in reversed(self.assignment.cells[:position]) if c.id in places), 0)


def _called(known: KnownCell) -> str:
    what = {"solve": "the cell of", "check": "the check of", "answer": "the answer to", "locked": "the locked cell"}
    name = known.exercise or known.grade_id or known.id
    return f"{what.get(known.role, 'the cell')} {name}"
