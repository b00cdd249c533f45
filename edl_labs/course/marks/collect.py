"""From a learning system's download to nbgrader's `submitted/`: each student's newest notebook, and what was odd."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from edl_labs.course.assignment import Assignment
from edl_labs.course.course_folder import CourseFolder
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.grade.plan import refuse_other_lab
from edl_labs.course.grade.submission import Unreadable, parse
from edl_labs.course.groups import read_groups
from edl_labs.course.marks.archives import BadArchive, Entry, notebooks_inside, read_folder, read_zip
from edl_labs.course.marks.lms import collects_as
from edl_labs.course.marks.lms.learning_system import ClassMember, LearningSystem, Upload, attempt
from edl_labs.course.marks.roster import (
    Roster,
    anonymous,
    course_remarks,
    read_roster,
    read_times,
    stamp,
    unknown_keys,
)
from edl_labs.course.marks.student_marks import open_book
from edl_labs.course.policy import CoursePolicy, read_policy
from edl_labs.errors import NothingToDo, UsageError
from edl_labs.values import Value


@dataclass(frozen=True)
class HandIn:
    """One student's notebook. `user` is their number in the learning system, `prefix` what feedback goes back under."""

    sha256: str
    submitted: str = ""
    number: int = 0
    prefix: str = ""
    user: str = ""

    def newer_than(self, other: HandIn) -> bool:
        """Whether it was handed in after another one, by the clock or else by the number of the upload."""
        if self.sha256 == other.sha256:
            return False
        if self.submitted and other.submitted:
            return self.submitted > other.submitted
        return bool(self.number and other.number and self.number > other.number)


def collected_folder(course: CourseFolder, assignment: str) -> Path:
    """Where notes on an assignment's notebooks are kept, and the notebooks that newer ones replaced."""
    return course.grading(assignment).parent.parent / "collected" / assignment


def write_hand_in(course: CourseFolder, assignment: str, student: str, known: HandIn) -> None:
    """Keep what is known of a student's notebook."""
    text = json.dumps(asdict(known), sort_keys=True)
    write_atomically(collected_folder(course, assignment) / f"{student}.json", text.encode())


def read_hand_in(course: CourseFolder, assignment: str, student: str) -> HandIn | None:
    """What is known of a student's notebook; None when nothing was collected, or the note cannot be read."""
    return _read(collected_folder(course, assignment) / f"{student}.json")


def hand_ins(course: CourseFolder, assignment: str) -> dict[str, HandIn]:
    """What is known of everyone's notebooks, by student."""
    found = ((path.stem, _read(path)) for path in sorted(collected_folder(course, assignment).glob("*.json")))
    return {student: known for student, known in found if known is not None}


def _read(path: Path) -> HandIn | None:
    try:
        return HandIn(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


NEW, REPLACED, KEPT, OLDER, NOTHING = "new", "replaced", "kept", "older", "no notebook"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True)
class Collected:
    """One student's hand-in. `state`: new, replaced, kept (the same file), older (than what is there), no notebook."""

    student: str
    name: str
    state: str
    file: str = ""
    submitted: str = ""
    """When, in UTC, ISO 8601; empty when the learning system did not say."""
    remarks: tuple[str, ...] = ()
    problem: str = ""
    """Why the notebook cannot be graded as it is: empty where it can. The student has to hear of it."""


@dataclass(frozen=True, repr=False)
class CollectReport(Value):
    """What was collected. `unmatched` are files whose student the roster does not have.

    `missing` handed in nothing, neither now nor in a download that was collected before.
    """

    DERIVED = ("exit_code",)
    ROWS = "rows"

    assignment: str
    rows: tuple[Collected, ...]
    unmatched: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 all matched; 1 when a file was not, or held no notebook, or one that cannot be graded."""
        return 1 if self.unmatched or any(row.state == NOTHING or row.problem for row in self.rows) else 0


def collect(
    assignment: str,
    source: Path,
    *,
    kind: str,
    course: CourseFolder | None = None,
    roster: Path | None = None,
    times: Path | None = None,
    progress: Callable[[int, str], None] | None = None,
) -> CollectReport:
    """Put the newest notebook of each student in `source` where nbgrader grades it.

    `source` is the zip that the learning system `kind` packs, or the folder that it was unpacked to; with `kind="dir"`
    it has a folder or a file for each student.
    Everything is read and checked before anything is written; what a newer hand-in replaces is kept beside it.
    """
    system = collects_as(kind)
    course = course or CourseFolder.find()
    graded = course.assignment(assignment)
    policy = read_policy(course.root)
    listed = roster or policy.roster
    known = read_roster(listed) if listed else None
    moments = read_times(times, policy, known) if times else {}
    uploads, unnamed = _uploads(source, system, progress)
    owners, unmatched = _owners(uploads, known)
    if known is not None:
        _enter_students(course, known)
    if not owners and not (unmatched or unnamed):
        raise NothingToDo(f"{source.name} holds nothing to collect", next="check that it is the right download")
    collector = _Collector(course, graded, policy, moments)
    chosen = collector.shared([collector.choose(student, files) for student, files in owners], known)
    rows = tuple(collector.write(choice) for choice in chosen)
    handed_in = {row.student for row in rows} | _earlier(course, assignment)
    missing = tuple(s.id for s in known.students if s.id not in handed_in) if known else ()
    remarks = [] if times else ["no submission times were given, so nothing counts as late (--times FILE)"]
    strangers = unknown_keys(moments, known)
    if times and strangers:
        more = f" and {len(strangers) - 5} more" if len(strangers) > 5 else ""
        remarks.append(f"{times.name} has times for ids that nobody in the class has: {', '.join(strangers[:5])}{more}")
    remarks += course_remarks(course, known)
    return CollectReport(assignment, rows, tuple(sorted((*unnamed, *unmatched))), missing, tuple(remarks))


def _earlier(course: CourseFolder, assignment: str) -> set[str]:
    """Whose notebook is there from a download that was collected before."""
    places = {s: course.path("submitted", student=s, assignment=assignment) for s in hand_ins(course, assignment)}
    return {student for student, place in places.items() if (place / f"{assignment}.ipynb").is_file()}


@dataclass(frozen=True)
class _Choice:
    student: ClassMember
    upload: Upload | None
    notebook: Entry | None
    remarks: tuple[str, ...]
    by: ClassMember | None = None
    """Who of the group handed it in, where that was another one."""

    @property
    def upload_number(self) -> tuple[int, float]:
        """What is higher for a later upload, where nobody says when it came."""
        return (self.upload.number, self.upload.entry.order) if self.upload else (0, 0.0)


@dataclass(frozen=True)
class _Collector:
    course: CourseFolder
    graded: Assignment
    policy: CoursePolicy
    moments: dict[str, datetime]

    @property
    def assignment(self) -> str:
        return self.graded.name

    def shared(self, choices: list[_Choice], roster: Roster | None) -> list[_Choice]:
        """The choices, with the newest of each group for all of its members."""
        own = {choice.student.id: choice for choice in choices}
        groups = read_groups(self.course.root, self.assignment)
        members = {s for choice in choices for s in groups.mates(choice.student.id)}
        found = []
        for student in sorted(members | own.keys()):
            theirs = [own[mate] for mate in groups.mates(student) if mate in own and own[mate].notebook is not None]
            if not theirs:
                found.append(own[student])
                continue
            newest = max(theirs, key=lambda choice: (self._moment(choice) or _LONG_AGO, choice.upload_number))
            if newest.student.id == student:
                found.append(newest)
                continue
            member = (roster.find(student) if roster else None) or anonymous(student)
            if member is not None:
                remark = f"handed in by {newest.student.id} for the group"
                found.append(replace(newest, student=member, by=newest.student, remarks=(*newest.remarks, remark)))
        return found

    def choose(self, student: ClassMember, uploads: list[Upload]) -> _Choice:
        """The notebook that counts: the newest; of several, the one called like the assignment."""
        remarks: list[str] = []
        found: list[tuple[Upload, Entry]] = []
        for one in uploads:
            try:
                found += [(one, inner) for inner in _notebooks(one)]
            except BadArchive as problem:
                remarks.append(f"{problem.what}: {problem.why}" if problem.why else problem.what)
        if not found:
            remarks.append(f"handed in {', '.join(sorted(u.file for u in uploads)[:5])}, but no notebook")
            return _Choice(student, uploads[0], None, tuple(remarks))
        ranked = sorted(found, key=self._rank)
        one, notebook = ranked[-1]
        if len({entry.data for _, entry in found}) > 1:
            remarks.append(f"{len(found)} notebooks, took {notebook.name}")
        if one.late and student.id not in self.moments:
            remarks.append("late by the learning system, which does not say by how much")
        return _Choice(student, one, notebook, tuple(remarks))

    def write(self, choice: _Choice) -> Collected:
        """Put a chosen notebook in its place, unless a newer one is there."""
        student, moment = choice.student, self._moment(choice)
        row = Collected(student.id, student.name, NOTHING, submitted=moment.isoformat() if moment else "")
        if choice.notebook is None or choice.upload is None:
            return replace(row, remarks=choice.remarks)
        data, file = choice.notebook.data, choice.upload.entry.path
        one = choice.upload
        problem, odd = self._looked_at(data)
        row, choice = replace(row, problem=problem), replace(choice, remarks=(*choice.remarks, *odd))
        prefix, user = ("", "") if choice.by else (one.prefix, one.user)
        record = HandIn(hashlib.sha256(data).hexdigest(), row.submitted, one.number, prefix, user)
        before = read_hand_in(self.course, self.assignment, student.id)
        place = self.course.path("submitted", student=student.id, assignment=self.assignment)
        notebook = place / f"{self.assignment}.ipynb"
        if before is not None and before.newer_than(record) and notebook.is_file():
            return replace(
                row, state=OLDER, file=file, remarks=(*choice.remarks, "a newer one has been collected before")
            )
        state = self._put(notebook, data, student.id)
        if moment is not None:
            write_atomically(place / "timestamp.txt", stamp(moment))
        elif state == REPLACED:
            (place / "timestamp.txt").unlink(missing_ok=True)  # it belongs to the notebook that was there before
        write_hand_in(self.course, self.assignment, student.id, record)
        return replace(row, state=state, file=file, remarks=choice.remarks)

    def _looked_at(self, data: bytes) -> tuple[str, tuple[str, ...]]:
        """Why a notebook cannot be graded, empty where it can; and what else is odd about the file."""
        try:
            submission = parse(data, limits=self.course.limits)
            refuse_other_lab(self.graded, submission)
        except Unreadable as problem:
            return (f"{problem.what}: {problem.why}" if problem.why else problem.what), ()
        return "", submission.notes

    def _put(self, notebook: Path, data: bytes, student: str) -> str:
        if notebook.is_symlink() or (notebook.exists() and not notebook.is_file()):
            raise UsageError(f"{notebook.name} of {student} is not a file", next="move it away, then collect again")
        if not notebook.exists():
            write_atomically(notebook, data)
            return NEW
        old = notebook.read_bytes()
        if old == data:
            return KEPT
        name = f"{hashlib.sha256(old).hexdigest()[:16]}.ipynb"
        write_atomically(collected_folder(self.course, self.assignment) / "replaced" / student / name, old)
        write_atomically(notebook, data)
        return REPLACED

    def _moment(self, choice: _Choice) -> datetime | None:
        who = choice.by or choice.student
        keys = (who.id, who.lms_id, choice.upload.user if choice.upload else "")
        return next((self.moments[key] for key in keys if key in self.moments), None)

    def _rank(self, pair: tuple[Upload, Entry]) -> tuple[Any, ...]:
        one, entry = pair
        stem, again = attempt(entry.name)
        _, outer = attempt(one.file)
        return (stem == self.assignment, max(again, outer), one.number, one.entry.order, entry.order, entry.path)


def _enter_students(course: CourseFolder, roster: Roster) -> None:
    """Put names and addresses of the class into the gradebook; nobody is removed."""
    with open_book(course) as book:
        for student in roster.students:
            known = {"first_name": student.first, "last_name": student.last, "email": student.email}
            book.update_or_create_student(student.id, **{key: value[:128] for key, value in known.items() if value})
        book.db.commit()


def _entries(source: Path) -> Iterator[Entry]:
    if source.is_dir():
        return read_folder(source)
    if not source.is_file():
        raise UsageError(f"there is no {source}", next="name the zip that was downloaded, or a folder")
    return read_zip(source, source.name)


def _uploads(
    source: Path, system: LearningSystem, progress: Callable[[int, str], None] | None
) -> tuple[list[Upload], list[str]]:
    uploads, unnamed = [], []
    for number, entry in enumerate(_entries(source), start=1):
        found = system.upload(entry)
        if found is None:
            unnamed.append(entry.path)
        elif found.file.lower() not in ("timestamp.txt",):
            uploads.append(found)
        if progress is not None:
            progress(number, entry.name)
    return uploads, unnamed


def _owners(
    uploads: Iterable[Upload], roster: Roster | None
) -> tuple[list[tuple[ClassMember, list[Upload]]], list[str]]:
    owners: dict[str, tuple[ClassMember, list[Upload]]] = {}
    unmatched = []
    for one in uploads:
        student = roster.find(one.user, name=one.name) if roster else anonymous(one.user)
        if student is None:
            unmatched.append(one.entry.path)
        else:
            owners.setdefault(student.id, (student, []))[1].append(one)
    return sorted(owners.values(), key=lambda pair: pair[0].id), unmatched


def _notebooks(one: Upload) -> list[Entry]:
    if one.file.lower().endswith(".ipynb"):
        return [Entry(one.file, one.entry.data, one.entry.order)]
    return notebooks_inside(one.entry) if one.file.lower().endswith(_ARCHIVES) else []
