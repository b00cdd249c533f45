"""A term, rehearsed: 200 students, two labs, from hand-in to marks out and grading again."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import grade
from edl_labs.course.marks.class_report import class_report
from edl_labs.course.marks.collect import collect
from edl_labs.course.marks.export import export
from edl_labs.course.marks.feedback import feedback
from edl_labs.course.marks.regrade import regrade
from edl_labs.course.marks.student_marks import class_marks, open_book
from tests.course.course_fixture import LAB, SECOND_LAB, Course, add_second_lab, second_name, solve_cell

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
STUDENTS = 200
FIRST = ("José", "Ann", "Łukasz", "李", "Zoë", "Mary Jane", "D'Arcy", "Ümit", "Renée", "Nguyễn")
LAST = (
    "Álvarez",
    "O'Neil, Jr",
    "Müller",
    "小龍",
    "van der Berg",
    "Smith-Jones",
    "=SUM(A1)",
    "Ōta",
    "Ibn Sīnā",
    "Åkesson",
)
FULL = {"area": 2.0, "box_area": 2.0, "halves": 2.0, "longest": 1.0}

FORGED = "area = lambda *a: 1\nimport edl_labs.checks as c\nc.check = lambda name: print(2.0)\nprint('area 2.0')"
ENDLESS = "def area(width, height):\n    while True: pass"
KILLER = "def halves(values):\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)"


@dataclass(frozen=True)
class Kind:
    """How a student works: what replaces the solutions, what each exercise then gives, and how late it comes."""

    name: str
    sources: dict[str, str] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    late_h: int = 0
    handed_in: bool = True
    broken: bool = False

    def expected(self) -> dict[str, float]:
        return {**FULL, **self.points}


KINDS = (
    *[Kind("honest")] * 6,
    *[Kind("late", late_h=30)] * 2,
    *[Kind("wrong", {"area": solve_cell("area", body="return width + height")}, {"area": 0.0})] * 3,
    *[Kind("half", {"halves": solve_cell("halves", body="return [values[0] / 2, *values[1:]]")}, {"halves": 1.0})] * 3,
    Kind("forger", {"area": FORGED}, {"area": 0.0}),
    Kind("endless", {"area": ENDLESS}, {"area": 0.0}),
    Kind("killer", {"halves": KILLER}, {"halves": 0.0}),
    Kind("absent", handed_in=False),
    Kind("broken", broken=True),
)


@dataclass(frozen=True)
class Someone:
    """One student of the class."""

    number: int
    first: str
    last: str
    kind: Kind
    twice: bool

    @property
    def id(self) -> str:
        return f"u{self.number:03}"

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"

    def hand(self, lab: str) -> float:
        """The mark that a person gives to the prose."""
        return float((self.number + len(lab)) % 3)

    def penalty(self, points: float) -> float:
        return points * 0.1 * (-(-self.kind.late_h // 24)) if self.kind.late_h else 0.0


def make_students() -> list[Someone]:
    drawn = random.Random(7)
    return [
        Someone(n, f"{FIRST[n % 10]}{n}", LAST[(n // 10) % 10], drawn.choice(KINDS), drawn.random() < 0.1)
        for n in range(STUDENTS)
    ]


def work_of(course: Course, one: Someone) -> bytes:
    """The notebook that someone hands in, different from all others in its comments and prose."""
    notebook = course.answered(one.kind.sources, prose=f"It is what {one.name} thinks, in {one.number} words.")
    notebook.cells[2]["source"] += f"\n# {one.id}"
    data = json.dumps(notebook).encode()
    return data[: len(data) // 2] if one.kind.broken else data


def table(head: str, rows: list[list[str]]) -> str:
    text = io.StringIO()
    text.write(head + "\n")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def canvas(course: Course, students: list[Someone]) -> Path:
    path = course.root / "canvas.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for one in students:
            name = f"{one.last}{one.first}".lower().replace(" ", "").replace(",", "").replace("/", "")
            if one.twice:
                packed.writestr(f"{name}_{1000 + one.number}_{9000 + one.number}_{course.lab}.ipynb", b"an old draft")
            upload = f"{name}_{1000 + one.number}_{19000 + one.number}_{course.lab}-1.ipynb"
            packed.writestr(upload, work_of(course, one))
    return path


def moodle(course: Course, students: list[Someone]) -> Path:
    path = course.root / "moodle.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for one in students:
            packed.writestr(
                f"{one.name}_{5000 + one.number}_assignsubmission_file_/{course.lab}.ipynb", work_of(course, one)
            )
    return path


@pytest.fixture
def term(released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course of two labs with a class, due dates and a roster."""
    shutil.copytree(released.root, tmp_path / "course")
    course = Course(tmp_path / "course")
    monkeypatch.setattr(class_kernels, "ALWAYS", ("edl_labs", "numpy", "edl_labs.checks.evidence"))
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    add_second_lab(course)
    due = "".join(f'[[assignment]]\nname = "{lab}"\ndue = 2026-11-01T12:00:00Z\n' for lab in (LAB, SECOND_LAB))
    (course.root / "course.toml").write_text(f'[course]\nroster = "roster.csv"\n[late]\nper_day = 0.1\n{due}')
    return course


def test_a_term(term: Course):
    students = make_students()
    present = [one for one in students if one.kind.handed_in]
    healthy = [one for one in present if not one.kind.broken]
    write_lists(term, students)
    folder = Repository(term.root)
    labs = {LAB: ("canvas", canvas), SECOND_LAB: ("moodle", moodle)}
    for lab, (kind, pack) in labs.items():
        taken = collect(
            lab, pack(Course(term.root, lab), present), kind=kind, course=folder, times=term.root / f"{kind}_times.csv"
        )

        assert {one.id for one in present} == {row.student for row in taken.rows}
        assert () == taken.unmatched
        assert {one.id for one in students} - {one.id for one in present} == set(taken.missing)

        report = grade(lab, course=folder, jobs=2, seed=11)
        assert {one.id for one in present if one.kind.broken} == {r.student for r in report.rows if r.points is None}
        assert {"graded"} == {row.state for row in report.rows if row.points is not None}

        mark_by_hand(folder, lab, healthy)
        assert totals(folder, lab) == {one.id: pytest.approx(total(one, lab)) for one in healthy}

        back = feedback(lab, course=folder, archive=term.root / f"{lab}_back.zip")
        assert [one.id for one in present] == sorted(back.pages)  # a page says, too, that a file cannot be read
        assert () == back.waiting

    check_canvas_export(term, folder, students, healthy)
    check_csv_export(term, folder, healthy)
    check_regrade(term, folder, healthy)
    assert len(healthy) == class_report(SECOND_LAB, course=folder)[0].students


def write_lists(term: Course, students: list[Someone]) -> None:
    """The roster, and when each learning system says that work came in."""
    rows = [[one.id, one.first, one.last, f"{one.id}@x.org", str(1000 + one.number)] for one in students]
    (term.root / "roster.csv").write_text(table("id,first_name,last_name,email,canvas_id", rows), encoding="utf-8")

    def at(one: Someone, text: Callable[[int, int], str]) -> str:
        hour = 11 + one.kind.late_h
        return text(1 + hour // 24, hour % 24)

    on_canvas = [[str(1000 + o.number), at(o, lambda d, h: f"2026-11-{d:02}T{h:02}:30:00Z")] for o in students]
    (term.root / "canvas_times.csv").write_text(table("canvas_id,submitted_at", on_canvas), encoding="utf-8")
    days = ("Sunday", "Monday", "Tuesday")

    def spelt(day: int, hour: int) -> str:
        return f"{days[day - 1]}, {day} November 2026, {(hour + 11) % 12 + 1}:30 {'PM' if hour >= 12 else 'AM'}"

    on_moodle = [[f"Participant {5000 + o.number}", o.name, f"{o.id}@x.org", at(o, spelt)] for o in students]
    head = "Identifier,Full name,Email address,Last modified (submission)"
    (term.root / "moodle_times.csv").write_text(table(head, on_moodle), encoding="utf-8")


def exercise(lab: str, name: str) -> str:
    return second_name(name) if lab == SECOND_LAB else name


def mark_by_hand(folder: Repository, lab: str, students: list[Someone]) -> None:
    with open_book(folder) as book:
        for one in students:
            found = book.find_grade(exercise(lab, "why_square"), lab, lab, one.id)
            found.manual_score, found.needs_manual_grade = one.hand(lab), False
        book.db.commit()


def total(one: Someone, lab: str, **mended: float) -> float:
    points = sum({**one.kind.expected(), **mended}.values()) + one.hand(lab)
    return points - one.penalty(points)


def totals(folder: Repository, lab: str) -> dict[str, float]:
    return {marks.student: marks.points for marks in class_marks(folder, lab)}


def check_canvas_export(term: Course, folder: Repository, students: list[Someone], healthy: list[Someone]) -> None:
    rows = [[f"{one.last}, {one.first}", str(1000 + one.number), ""] for one in students]
    template, out = term.root / "canvas_grades.csv", term.root / "canvas_out.csv"
    template.write_text(table(f"Student,ID,{LAB} (7)", rows), encoding="utf-8")
    report = export(LAB, kind="canvas", out=out, template=template, course=folder)
    written = {row["ID"]: row for row in csv.DictReader(io.StringIO(out.read_text(encoding="utf-8-sig")))}
    column = f"{LAB} (7)"

    assert len(students) == len(written)
    assert () == report.unknown
    assert len(students) - len(healthy) == len(report.without)
    for one in healthy:
        assert float(written[str(1000 + one.number)][column]) == pytest.approx(total(one, LAB), abs=1e-4)
    assert not [row["Student"] for row in written.values() if row["Student"].startswith("=")]


def check_csv_export(term: Course, folder: Repository, healthy: list[Someone]) -> None:
    out = term.root / "marks.csv"
    export(SECOND_LAB, kind="csv", out=out, course=folder)
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8-sig"))))

    assert [one.id for one in healthy] == sorted(row["student"] for row in rows)


def check_regrade(term: Course, folder: Repository, healthy: list[Someone]) -> None:
    """Half-right halves now give three quarters; only they change, and marks given by hand stay."""
    module = term.exercises / f"{LAB}.py"
    module.write_text(module.read_text().replace("else 0.5", "else 0.75"))
    half = [one for one in healthy if one.kind.name == "half"]
    before = totals(folder, LAB)
    shown = regrade(LAB, ["halves"], course=folder, jobs=2)

    assert before == totals(folder, LAB)
    assert [(one.id, "halves", 1.0, 1.5) for one in half] == sorted(
        (c.student, c.exercise, c.before, c.after) for c in shown.changes
    )
    regrade(LAB, ["halves"], course=folder, jobs=2, apply=True)
    after = totals(folder, LAB)
    assert after == {
        one.id: pytest.approx(total(one, LAB, **({"halves": 1.5} if one in half else {}))) for one in healthy
    }
