"""From a learning system's download to nbgrader's `submitted/`: each student's newest notebook, with remarks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from edl_labs.course.assignment import Assignment
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.grade.nbgrader_assignments import is_nbgraders, notebook_names
from edl_labs.course.grade.other_files import collected_beside
from edl_labs.course.grade.other_lab import refuse_other_lab
from edl_labs.course.grade.plan import count_answers
from edl_labs.course.grade.student_names import plain_name
from edl_labs.course.grade.submission import Unreadable, parse
from edl_labs.course.groups import read_groups
from edl_labs.course.marks.archives import Entry, read_folder, read_zip
from edl_labs.course.marks.chosen_files import Choice, choose, own_names
from edl_labs.course.marks.hand_ins import HandIn, collected_folder, hand_ins, read_hand_in, write_hand_in
from edl_labs.course.marks.lms import collects_as, folder
from edl_labs.course.marks.lms.learning_system import ClassMember, Upload
from edl_labs.course.marks.lms.named_files import NamedFiles
from edl_labs.course.marks.owners import find_owners, find_teams
from edl_labs.course.marks.roster import (
    Roster,
    anonymous,
    course_remarks,
    listed_students,
    read_roster,
    read_times,
    stamp,
    unknown_keys,
)
from edl_labs.course.marks.student_marks import open_book
from edl_labs.course.policy import CoursePolicy, read_policy
from edl_labs.errors import NothingToDo, UsageError
from edl_labs.values import Value

NEW, REPLACED, KEPT, OLDER, NOTHING = "new", "replaced", "kept", "older", "no notebook"
_UNUSUAL = re.compile(r"[^\w.()\- ]")
_MOST_LETTERS = 80  # of a file's name: systems take 255 bytes, and a letter may have four
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Collected:
    """One student's hand-in. `state`: new, replaced, kept (the same file), older (than the stored one), no notebook."""

    student: str
    name: str
    state: str
    file: str = ""
    submitted: str = ""
    """The submission time, in UTC and ISO 8601; empty if the learning system gave none."""
    remarks: tuple[str, ...] = ()
    problem: str = ""
    """The reason why the notebook cannot be graded, for the student; empty if it can be graded."""


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
    course: Course | None = None,
    roster: Path | None = None,
    times: Path | None = None,
    pattern: str = "",
    progress: Callable[[int, str], None] | None = None,
) -> CollectReport:
    """Put the newest notebook of each student in `source` where nbgrader grades it.

    `source` is the zip that the learning system `kind` packs, or the folder that it was unpacked to; with `kind="dir"`
    it has a folder or a file for each student, unless `pattern` says whose a file is (`NamedFiles`).
    Everything is read and checked before anything is written; what a newer hand-in replaces is kept next to it.
    """
    upload = _reader(kind, pattern)
    course = course or Course.find_class()
    graded, names = _assignment(course, assignment)
    policy = read_policy(course.root)
    listed = roster or policy.roster
    known = read_roster(listed) if listed else None
    moments = read_times(times, policy, known) if times else {}
    uploads, unnamed = _uploads(source, upload, progress)
    groups = read_groups(course.root, assignment)
    owners = find_owners(uploads, known, find_teams(known, listed_students(times) if times else (), groups))
    if known is not None:
        _enter_students(course, known)
    if not owners.files and not (owners.unmatched or unnamed):
        raise NothingToDo(f"{source.name} contains nothing to collect", next="check whether this is the right file")
    collector = _Collector(course, assignment, graded, names, policy, moments)
    wanted, work = _asked_files(graded), partial(_work, graded, course)
    chosen = collector.shared(
        [choose(student, files, names, wanted=wanted, work=work) for student, files in owners.files], known
    )
    rows = tuple(_shown(collector.write(choice)) for choice in chosen)
    handed_in = {row.student for row in rows} | _earlier(course, assignment, names)
    missing = tuple(s.id for s in known.students if s.id not in handed_in) if known else ()
    remarks = [*owners.remarks, *_remarks_on_times(times, moments, known), *course_remarks(course, known)]
    if times is None and not any(one.time for one in uploads):
        remarks.append(
            "no submission times were given (--times), so only what the learning system marks as late counts as late"
        )
    unmatched = tuple(map(plain_name, sorted((*unnamed, *owners.unmatched))))
    return CollectReport(assignment, rows, unmatched, missing, tuple(remarks))


def _shown(row: Collected) -> Collected:
    """A row whose names of files, which may be anything, act on no terminal."""
    return replace(row, file=plain_name(row.file), remarks=tuple(map(plain_name, row.remarks)))


def _assignment(course: Course, name: str) -> tuple[Assignment | None, tuple[str, ...]]:
    """The lab that is collected, None for an assignment of nbgrader's form; and the names of its notebooks."""
    if is_nbgraders(course, name):
        return None, notebook_names(course, name)
    return course.assignment(name), (name,)


def _asked_files(graded: Assignment | None) -> tuple[str, ...]:
    """The files that the lab's exercises read next to the notebook."""
    asked = (name for exercise in (graded.exercises if graded else ()) for name in exercise.spec.hand_ins)
    return tuple(dict.fromkeys(asked))


def _work(graded: Assignment | None, course: Course, notebook: bytes) -> int:
    """How many answers a notebook has; nobody counts those of an assignment of nbgrader's."""
    return 0 if graded is None else count_answers(graded, notebook, limits=course.limits)


def _reader(kind: str, pattern: str) -> Callable[[Entry], Upload | None]:
    """What says whose an entry of the download is."""
    if not pattern:
        return collects_as(kind).upload
    if collects_as(kind) is not folder:
        why = f"the format of file names from {kind} is already known"
        raise UsageError(
            f"--pattern and --from {kind} cannot be combined", why=why, next="leave out --pattern, or use --from dir"
        )
    return NamedFiles.written(pattern).upload


def _remarks_on_times(times: Path | None, moments: dict[str, datetime], known: Roster | None) -> list[str]:
    strangers = unknown_keys(moments, known)
    if times is None or not strangers:
        return []
    more = f" and {len(strangers) - 5} more" if len(strangers) > 5 else ""
    return [f"{times.name} has times for ids that are not in the class: {', '.join(strangers[:5])}{more}"]


def _earlier(course: Course, assignment: str, names: Sequence[str]) -> set[str]:
    """Whose notebook is there from a download that was collected before."""
    places = {s: course.path("submitted", student=s, assignment=assignment) for s in hand_ins(course, assignment)}
    return {student for student, place in places.items() if _is_there(place, names)}


def _is_there(place: Path, names: Sequence[str]) -> bool:
    return any((place / f"{name}.ipynb").is_file() for name in names)


@dataclass(frozen=True)
class _Collector:
    course: Course
    assignment: str
    graded: Assignment | None
    names: tuple[str, ...]
    policy: CoursePolicy
    moments: dict[str, datetime]

    def shared(self, choices: list[Choice], roster: Roster | None) -> list[Choice]:
        """The choices, with the newest of each group for all of its members."""
        own = {choice.student.id: choice for choice in choices}
        groups = read_groups(self.course.root, self.assignment)
        members = {s for choice in choices for s in groups.mates(choice.student.id)}
        found = []
        for student in sorted(members | own.keys()):
            theirs = [own[mate] for mate in groups.mates(student) if mate in own and own[mate].notebooks]
            if student in own and own[student].of_team:
                theirs = [own[student]]
            if not theirs:
                found.append(own[student])
                continue
            newest = max(theirs, key=lambda choice: (self._moment(choice) or _LONG_AGO, choice.upload_number))
            mates = [own[mate] for mate in groups.mates(student) if mate in own and own[mate] is not newest]
            if not newest.of_team:
                newest = replace(newest, others=_of_mates(newest, mates))
            if newest.student.id == student:
                found.append(newest)
                continue
            member = (roster.find(student) if roster else None) or anonymous(student)
            if member is not None:
                remark = f"handed in by {newest.student.id} for the group"
                found.append(replace(newest, student=member, by=newest.student, remarks=(*newest.remarks, remark)))
        return found

    def write(self, choice: Choice) -> Collected:
        """Put the chosen notebooks in their place, unless newer ones are there."""
        student, moment = choice.student, self._moment(choice)
        row = Collected(student.id, student.name, NOTHING, submitted=moment.isoformat() if moment else "")
        place = self.course.path("submitted", student=student.id, assignment=self.assignment)
        _keep_others(choice.others, collected_beside(place))
        if not choice.notebooks or choice.upload is None:
            return replace(row, remarks=choice.remarks)
        one, file = choice.upload, choice.upload.entry.path
        data = b"".join(entry.data for entry in choice.notebooks.values())
        problem, odd = self._looked_at_all(choice)
        late = (self._late_remark(student),) if one.late and moment is None else ()
        row, choice = replace(row, problem=problem), replace(choice, remarks=(*choice.remarks, *late, *odd))
        prefix, user = ("", "") if choice.by else (one.prefix, one.user)
        record = HandIn(hashlib.sha256(data).hexdigest(), row.submitted, one.number, prefix, user)
        before = read_hand_in(self.course, self.assignment, student.id)
        if before is not None and before.newer_than(record) and _is_there(place, self.names):
            return replace(
                row, state=OLDER, file=file, remarks=(*choice.remarks, "a newer notebook was collected earlier")
            )
        puts = {name: self._put(place / f"{name}.ipynb", e.data, student.id) for name, e in choice.notebooks.items()}
        state = next((state for state in (REPLACED, NEW) if state in puts.values()), KEPT)
        for module in {*place.glob("*.py"), *(place / name for name in choice.modules)}:
            self._put(module, choice.modules.get(module.name), student.id)
        for name in _asked_files(self.graded):
            if name in choice.files or (place / name).exists():
                self._put(place / name, choice.files.get(name), student.id)
        if before is not None and before.sha256 == record.sha256:
            record = replace(record, submitted=record.submitted or before.submitted)
        least = self._least_late(student) if one.late and not record.submitted else None
        _put_time(place / "timestamp.txt", moment or least, new=state == REPLACED)
        write_hand_in(self.course, self.assignment, student.id, record)
        return replace(row, state=state, file=file, remarks=choice.remarks)

    def _looked_at_all(self, choice: Choice) -> tuple[str, tuple[str, ...]]:
        """The same of every notebook; one that is missing cannot be graded either."""
        found = {name: self._looked_at(entry.data) for name, entry in choice.notebooks.items()}
        problems = [f"there is no {name}.ipynb" for name in self.names if name not in found]
        problems += [problem for problem, _ in found.values() if problem]
        return "; ".join(problems), tuple(note for _, notes in found.values() for note in notes)

    def _looked_at(self, data: bytes) -> tuple[str, tuple[str, ...]]:
        """Why a notebook cannot be graded, empty where it can; and what else is odd about the file."""
        try:
            submission = parse(data, limits=self.course.limits)
            if self.graded is not None:
                refuse_other_lab(self.graded, submission)
        except Unreadable as problem:
            return (f"{problem.what}: {problem.why}" if problem.why else problem.what), ()
        return "", submission.notes

    def _put(self, path: Path, data: bytes | None, student: str) -> str:
        """Write a file, or remove it where there is none any more; what was there before is kept."""
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise UsageError(f"{path.name} of {student} is not a file", next="move it elsewhere, then collect again")
        old = path.read_bytes() if path.exists() else None
        if old == data:
            return KEPT
        if old is not None:
            name = f"{hashlib.sha256(old).hexdigest()[:16]}{path.suffix}"
            write_atomically(collected_folder(self.course, self.assignment) / "replaced" / student / name, old)
        if data is None:
            path.unlink()
        else:
            write_atomically(path, data)
        return NEW if old is None else REPLACED

    def _moment(self, choice: Choice) -> datetime | None:
        who = choice.by or choice.student
        keys = (who.id, who.lms_id, choice.upload.user if choice.upload else "")
        listed = next((self.moments[key] for key in keys if key in self.moments), None)
        named = choice.upload.time if choice.upload else None
        return listed or (self.policy.moment(named) if named else None)

    def _least_late(self, student: ClassMember) -> datetime | None:
        """The earliest time that counts as late for a student; None where course.toml has no due date."""
        due = self.policy.dates(self.assignment).due_for(student.id)
        return due + timedelta(seconds=self.policy.late.grace_s + 1) if due else None

    def _late_remark(self, student: ClassMember) -> str:
        if self._least_late(student) is None:
            return "late according to the learning system; course.toml has no due date, so no points are lost"
        return "late according to the learning system, by an unknown time: counts as one day late (use --times FILE)"


def _of_mates(newest: Choice, mates: Iterable[Choice]) -> dict[str, bytes]:
    """What else was handed in for a group: beside the newest notebook, and by the others of the group."""
    used = [entry.data for entry in newest.notebooks.values()]
    files = [*newest.others.items()]
    for mate in mates:
        theirs = [(entry.name, entry.data) for entry in mate.notebooks.values()]
        files += [(f"{mate.student.id}_{name}", data) for name, data in [*theirs, *mate.others.items()]]
    return own_names([(name, data) for name, data in files if data not in used])


def _keep_others(files: Mapping[str, bytes], folder: Path) -> None:
    """Keep what was handed in beside the notebook. What an earlier download had stays: an answer may be there."""
    before = [(path.name, path.read_bytes()) for path in sorted(folder.glob("*")) if path.is_file()]
    named = [(_UNUSUAL.sub("_", name).lstrip(".")[-_MOST_LETTERS:] or "_", data) for name, data in files.items()]
    for name, data in own_names([*before, *named]).items():
        if not (folder / name).exists():
            write_atomically(folder / name, data)


def _put_time(path: Path, moment: datetime | None, *, new: bool) -> None:
    """Write when a notebook was handed in. Without a time, that of a notebook which a `new` one replaced goes."""
    if moment is not None:
        write_atomically(path, stamp(moment))
    elif new:
        path.unlink(missing_ok=True)


def _enter_students(course: Course, roster: Roster) -> None:
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
        raise UsageError(f"there is no file or folder {source}", next="pass the downloaded zip, or a folder")
    return read_zip(source, source.name)


def _uploads(
    source: Path, upload: Callable[[Entry], Upload | None], progress: Callable[[int, str], None] | None
) -> tuple[list[Upload], list[str]]:
    uploads, unnamed = [], []
    for number, entry in enumerate(_entries(source), start=1):
        found = upload(entry)
        if found is None:
            unnamed.append(entry.path)
        elif found.file.lower() not in ("timestamp.txt",):
            uploads.append(found)
        if progress is not None:
            progress(number, entry.name)
    return uploads, unnamed
