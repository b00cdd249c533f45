"""A learning system's download becomes nbgrader's submissions: newest first, nobody lost, nothing half written."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.marks.archives import BadArchive
from edl_labs.course.marks.collect import CollectReport, collect
from edl_labs.errors import NothingToDo, UsageError
from tests.course.course_fixture import LAB, Course, make_lab_course

ROSTER = 'id,first_name,last_name,email,canvas_id\nana,José,Álvarez,jose@x.org,101\nann,Ann,"O\'Neil, Jr",a@x.org,102\n'


@pytest.fixture
def course(released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course of its own with a roster."""
    shutil.copytree(released.root, tmp_path / "course")
    course = Course(tmp_path / "course")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    (course.root / "roster.csv").write_text(ROSTER, encoding="utf-8")
    return course


def archive(course: Course, files: dict[str, bytes], name: str = "submissions.zip") -> Path:
    path = course.root / name
    with zipfile.ZipFile(path, "w") as packed:
        for file, data in files.items():
            packed.writestr(file, data)
    return path


def take(course: Course, source: Path, kind: str = "canvas", **options: object) -> CollectReport:
    options = {"roster": course.root / "roster.csv", **options}
    return collect(LAB, source, kind=kind, course=Repository(course.root), **options)  # type: ignore[arg-type]


def submitted(course: Course, student: str) -> Path:
    return course.root / "course" / "submitted" / student / LAB / f"{LAB}.ipynb"


def states(report: CollectReport) -> dict[str, str]:
    return {row.student: row.state for row in report.rows}


def test_canvas_download_is_matched_and_what_is_not_is_listed(course: Course):
    files = {
        f"alvarezjose_101_9001_{LAB}.ipynb": b"first",
        f"oneilann_LATE_102_9002_{LAB}-1.ipynb": b"second",
        f"nobody_999_9003_{LAB}.ipynb": b"third",
        "readme.txt": b"",
    }
    report = take(course, archive(course, files))

    assert {"ana": "new", "ann": "new"} == states(report)
    assert b"second" == submitted(course, "ann").read_bytes()
    assert (f"nobody_999_9003_{LAB}.ipynb", "readme.txt") == report.unmatched
    assert "late according to the learning system" in report.rows[1].remarks[0]
    assert 1 == report.exit_code


def test_of_several_the_newest_counts(course: Course):
    names = (f"{LAB}.ipynb", f"{LAB}-2.ipynb", f"{LAB}-1.ipynb", "scratch.ipynb")
    files = {f"alvarezjose_101_{9000 + n}_{name}": name.encode() for n, name in enumerate(names)}
    report = take(course, archive(course, files))

    assert f"{LAB}-2.ipynb".encode() == submitted(course, "ana").read_bytes()
    assert "4 notebooks" in report.rows[0].remarks[0]


def test_a_resubmission_replaces_and_an_older_download_does_not(course: Course):
    old, new = ({f"alvarezjose_101_{n}_{LAB}.ipynb": str(n).encode()} for n in (9001, 9005))
    seen = [states(take(course, archive(course, files, f"{n}.zip"))) for n, files in enumerate((old, new, old, new))]

    assert ["new", "replaced", "older", "kept"] == [found["ana"] for found in seen]
    assert b"9005" == submitted(course, "ana").read_bytes()
    kept = list((course.root / "course" / "collected" / LAB / "replaced" / "ana").iterdir())
    assert [b"9001"] == [path.read_bytes() for path in kept]


def test_moodle_times_come_from_its_worksheet_and_never_from_a_students_file(course: Course):
    worksheet = course.root / "worksheet.csv"
    worksheet.write_text(
        "Identifier,Full name,Email address,Last modified (submission)\n"
        'Participant 555,José Álvarez,jose@x.org,"Friday, 20 November 2026, 11:59 PM"\n'
        "Participant 556,Ann Other,ann@x.org,-\n",
        encoding="utf-8",
    )
    files = {
        f"José Álvarez_555_assignsubmission_file_/{LAB}.ipynb": b"{}",
        "José Álvarez_555_assignsubmission_file_/timestamp.txt": b"1999-01-01 00:00:00 UTC",
        "Ann Other_556_assignsubmission_file_/work.zip": _inner(),
    }
    report = take(course, archive(course, files), "moodle", roster=worksheet, times=worksheet)
    stamp = submitted(course, "jose@x.org").with_name("timestamp.txt")

    assert "2026-11-20 23:59:00.000000 UTC" == stamp.read_text()
    assert b"inner" == submitted(course, "ann@x.org").read_bytes()
    assert not submitted(course, "ann@x.org").with_name("timestamp.txt").exists()
    assert ("2026-11-20T23:59:00+00:00", "") == tuple(
        r.submitted for r in sorted(report.rows, key=lambda r: r.student)
    )[::-1]


def _inner() -> bytes:
    import io

    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        packed.writestr(f"my work/{LAB}.ipynb", b"inner")
    return data.getvalue()


def test_a_folder_with_a_folder_or_file_each(course: Course):
    source = course.root / "in"
    for name, data in (("ana/x.ipynb", b"1"), ("a@x.org.ipynb", b"2"), ("José Álvarez Other/y.ipynb", b"3")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    report = take(course, source, "dir")

    assert {"ana": "new", "ann": "new"} == states(report)
    assert ("José Álvarez Other/y.ipynb",) == report.unmatched


def test_who_handed_in_something_else_is_told_and_who_did_not_is_missing(course: Course):
    report = take(course, archive(course, {"alvarezjose_101_9001_essay.pdf": b"%PDF"}))

    assert {"ana": "no notebook"} == states(report)
    assert "essay.pdf" in report.rows[0].remarks[0]
    assert ("ann",) == report.missing
    assert not submitted(course, "ana").exists()


def test_who_handed_in_before_is_not_missing_from_a_later_download(course: Course):
    take(course, archive(course, {f"alvarezjose_101_9001_{LAB}.ipynb": b"1"}))
    report = take(course, archive(course, {f"bellann_102_9002_{LAB}.ipynb": b"2"}))

    assert {"ann": "new"} == states(report)
    assert () == report.missing


def test_one_students_bad_archive_is_nobody_elses(course: Course):
    files = {"alvarezjose_101_9001_w.zip": b"PK\x03\x04 broken", f"oneilann_102_9002_{LAB}.ipynb": b"{}"}
    report = take(course, archive(course, files))

    assert {"ana": "no notebook", "ann": "new"} == states(report)
    assert "not a zip archive" in report.rows[0].remarks[0]


def test_an_archive_that_escapes_writes_nothing(course: Course):
    files = {f"alvarezjose_101_9001_{LAB}.ipynb": b"{}", f"../../escaped_102_9_{LAB}.ipynb": b"{}"}
    with pytest.raises(BadArchive, match="refused"):
        take(course, archive(course, files))

    assert not submitted(course, "ana").exists()


CLASS = f"{ROSTER}al101,Ada,Lovelace,al@x.org,103\n"


@pytest.mark.parametrize(
    ("pattern", "path", "submitted"),
    [
        (  # Brightspace
            r"\d+-\d+ - (?P<name>.+?) - (?P<time>[^/]+)/(?P<file>.+)",
            "41234-567890 - Ada Lovelace - Nov 20, 2026 1159 PM/work.ipynb",
            "2026-11-20T23:59:00+00:00",
        ),
        (  # Blackboard
            r".+?_(?P<user>[^_]+)_attempt_(?P<time>[\d-]+)(_(?P<file>.+)|\.txt)",
            "Lab 1_al101_attempt_2026-11-20-23-59-10_work.ipynb",
            "2026-11-20T23:59:10+00:00",
        ),
        (  # ILIAS
            r"[^/]+/[^/]+_(?P<user>[^_/]+)_\d+/(?P<file>.+)",
            "Lab 1/Lovelace_Ada_al101_4711/work.ipynb",
            "",
        ),
    ],
    ids=["brightspace", "blackboard", "ilias"],
)
def test_another_systems_download_is_read_by_a_pattern(course: Course, pattern: str, path: str, submitted: str):
    (course.root / "roster.csv").write_text(CLASS, encoding="utf-8")
    files = {path: b"{}", "index.html": b"", "list.txt": b"", path.replace("work.ipynb", "essay.pdf"): b""}
    report = take(course, archive(course, files), "dir", pattern=pattern)

    assert [("al101", "new", submitted)] == [(row.student, row.state, row.submitted) for row in report.rows]
    assert ("list.txt",) == report.unmatched  # index.html is Brightspace's own
    assert "not used, because only notebooks and Python files are used: essay.pdf" in report.rows[0].remarks


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (
            r"\d+-\d+ - (?P<name>.+?) - (?P<time>[^/]+)/(?P<file>.+)",
            "41-56 - Ada Lovelace - Nov 20, 2026 1159 PM/41-57 - José Álvarez - Nov 1, 2026 1159 PM/x.ipynb",
        ),
        (
            r".+?_(?P<user>[^_]+)_attempt_(?P<time>[\d-]+)(_(?P<file>.+)|\.txt)",
            "Lab 1_al101_attempt_2026-11-20-23-59-10_x_ana_attempt_2026-11-01-10-00-00_y.ipynb",
        ),
        (
            r"[^/]+/[^/]+_(?P<user>[^_/]+)_\d+/(?P<file>.+)",
            "Lab 1/Lovelace_Ada_al101_4711/Álvarez_José_ana_4712/x.ipynb",
        ),
    ],
    ids=["brightspace", "blackboard", "ilias"],
)
def test_names_that_a_student_chose_hand_in_for_nobody_else(course: Course, pattern: str, path: str):
    (course.root / "roster.csv").write_text(CLASS, encoding="utf-8")
    report = take(course, archive(course, {path: b"{}"}), "dir", pattern=pattern)

    assert ["al101"] == [row.student for row in report.rows]


def test_own_modules_come_along_and_go_with_the_notebook_that_imports_them(course: Course):
    first = {f"oneilann_102_9002_{LAB}.ipynb": b"1", "oneilann_102_9003_helpers-1.py": b"x = 1"}
    report = take(course, archive(course, {**first, "oneilann_102_9004_my notes.py": b""}))
    place = submitted(course, "ann").parent

    assert b"x = 1" == (place / "helpers.py").read_bytes()
    assert (
        "modules of the student: helpers.py",
        "not used, because only notebooks and Python files are used: my notes.py",
    ) == (report.rows[0].remarks[:2])
    take(course, archive(course, {f"oneilann_102_9010_{LAB}.ipynb": b"2"}))
    assert [f"{LAB}.ipynb"] == [path.name for path in place.iterdir()]


def test_of_several_attempts_the_newest_by_its_name_counts(course: Course):
    names = [f"Lab_ana_attempt_2026-11-{day}-10-00-00_x.ipynb" for day in (20, 21, 19)]
    pattern = r"Lab_(?P<user>\w+)_attempt_(?P<time>[\d-]+)_(?P<file>.+)"
    take(course, archive(course, {name: name.encode() for name in names}), "dir", pattern=pattern)

    assert names[1].encode() == submitted(course, "ana").read_bytes()


def test_a_pattern_and_a_known_system_do_not_go_together(course: Course):
    with pytest.raises(UsageError, match="cannot be combined"):
        take(course, archive(course, {}), "canvas", pattern="(?P<user>.+)")


def test_a_moodle_group_hands_in_for_each_member_and_its_number_is_nobodys(course: Course):
    worksheet = course.root / "worksheet.csv"
    worksheet.write_text(
        "Identifier,Full name,Email address,Status,Group,Grade,Maximum Grade,Last modified (submission)\n"
        'Participant 101,José Álvarez,jose@x.org,,Group A,,5,"Friday, 20 November 2026, 11:59 PM"\n'
        'Participant 102,"Ann O\'Neil, Jr",a@x.org,,Group B,,5,"Friday, 20 November 2026, 10:00 AM"\n',
        encoding="utf-8",
    )
    stranger = "Group C_101_assignsubmission_file_/x.ipynb"
    files = {f"Group A_102_assignsubmission_file_/{LAB}.ipynb": b"A", stranger: b"C"}
    report = take(course, archive(course, files), "moodle", times=worksheet)

    assert {"ana": "new"} == states(report)
    assert ("handed in by the group Group A",) == report.rows[0].remarks[:1]
    assert "2026-11-20T23:59:00+00:00" == report.rows[0].submitted
    assert (stranger,) == report.unmatched
    assert "the number 101 is that of José Álvarez" in report.remarks[0]


@pytest.mark.parametrize(("due", "stamped"), [(True, "2026-11-01 12:10:01.000000 UTC"), (False, None)])
def test_what_canvas_calls_late_costs_a_day_until_times_are_given(course: Course, due: bool, stamped: str | None):
    policy = f'[late]\ngrace_minutes = 10\n[[assignment]]\nname = "{LAB}"\n' + "due = 2026-11-01T12:00:00\n" * due
    (course.root / "course.toml").write_text(policy)
    times = course.root / "times.csv"
    times.write_text("ID,submitted_at\n102,2026-11-05T10:00:00Z\n")
    zipped = archive(course, {f"oneilann_LATE_102_9002_{LAB}.ipynb": b"{}"})
    moment = submitted(course, "ann").with_name("timestamp.txt")
    reports = [take(course, zipped, times=given) for given in (None, times, None)]
    first = take(course, zipped) and reports[0].rows[0]

    assert ("", "late according to the learning system") == (first.submitted, first.remarks[0][:37])
    assert "2026-11-05 10:00:00.000000 UTC" == moment.read_text()  # later downloads without times keep it
    (course.root / "course" / "collected" / LAB / "ann.json").unlink()
    moment.unlink()
    take(course, zipped)
    assert stamped == (moment.read_text() if moment.exists() else None)


@pytest.mark.parametrize("kind", ["canvas", "moodle", "blackboard"])
def test_what_cannot_be_collected_from_is_said(course: Course, kind: str):
    with pytest.raises((UsageError, NothingToDo)):
        take(course, course.root / "nothing.zip", kind)
    with pytest.raises((UsageError, NothingToDo)):
        take(course, archive(course, {}), kind)


def test_names_reach_the_gradebook_and_the_report_is_json(course: Course):
    from nbgrader.api import Gradebook

    report = take(course, archive(course, {f"oneilann_102_9002_{LAB}.ipynb": b"{}"}))
    with Gradebook(f"sqlite:///{course.root / 'course' / 'gradebook.db'}", "edl") as book:
        student = book.find_student("ann")

        assert ("Ann", "O'Neil, Jr", "a@x.org") == (student.first_name, student.last_name, student.email)
    assert 1 == json.loads(json.dumps(report.to_json()))["schema"]


FILES = ("own_before.json.gz", "own_after.json.gz")


@pytest.fixture
def lab05(tmp_path: Path) -> Course:
    """A course around the lab that asks for two files next to the notebook."""
    course = make_lab_course(tmp_path, "lab05_profiling")
    (course.root / "roster.csv").write_text(ROSTER, encoding="utf-8")
    return course


def taken_files(course: Course, files: dict[str, bytes], kind: str, name: str = "one.zip") -> tuple[list[bytes], str]:
    """What lies beside Ann's notebook after a download was collected, and what was remarked of her."""
    source, repository = archive(course, files, name), Repository(course.root)
    report = collect(course.lab, source, kind=kind, course=repository, roster=course.root / "roster.csv")
    (row,) = [row for row in report.rows if row.student == "ann"]
    folder = course.root / "course" / "submitted" / "ann" / course.lab
    return [(folder / file).read_bytes() for file in FILES if (folder / file).exists()], "; ".join(row.remarks)


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for file, data in files.items():
            packed.writestr(file, data)
    return buffer.getvalue()


def test_files_that_a_lab_asks_for_come_from_each_form_of_a_download(lab05: Course):
    notebook = json.dumps(lab05.released()).encode()
    canvas = {f"oneilann_102_9001_{lab05.lab}.ipynb": notebook}
    canvas |= {f"oneilann_102_{9002 + n}_{file}": b"\x1f\x8b" + file.encode() for n, file in enumerate(FILES)}
    moodle = {f"Ann O'Neil, Jr_555_assignsubmission_file_/{path.split('_', 3)[3]}": d for path, d in canvas.items()}
    packed = {
        f"oneilann_102_9001_{lab05.lab}.zip": zipped({f"work/{p.split('_', 3)[3]}": data for p, data in canvas.items()})
    }
    for number, (files, kind) in enumerate(((canvas, "canvas"), (moodle, "moodle"), (packed, "canvas"))):
        found, told = taken_files(lab05, files, kind, f"{number}.zip")

        assert [b"\x1f\x8b" + file.encode() for file in FILES] == found
        assert "missing" not in told
        assert "not used" not in told


def test_the_newest_complete_set_is_kept_together_and_what_is_missing_is_named(lab05: Course):
    notebook = {f"oneilann_102_9001_{lab05.lab}.ipynb": json.dumps(lab05.released()).encode()}
    first = {f"oneilann_102_{9002 + n}_{file}": b"first" for n, file in enumerate(FILES)}
    again = {f"oneilann_102_{9005 + n}_{file.replace('.gz', '-1.gz')}": b"again" for n, file in enumerate(FILES)}
    half = {"oneilann_102_9009_own_after.json-2.gz": b"half"}

    assert [b"again"] * 2 == taken_files(lab05, {**notebook, **again, **first, **half}, "canvas", "1.zip")[0]
    assert ([b"half"], "missing next to the notebook: own_before.json.gz") == taken_files(
        lab05, {**notebook, **half}, "canvas", "2.zip"
    )
    assert [] == taken_files(lab05, notebook, "canvas", "3.zip")[0]


def test_hostile_files_beside_a_notebook_are_left_out(lab05: Course):
    notebook = {f"oneilann_102_9001_{lab05.lab}.ipynb": json.dumps(lab05.released()).encode()}
    odd = {"oneilann_102_9002_=cmd()_own_after.json.gz": b"x", "oneilann_102_9003_own_before.json.gz": b"x" * 5_000_001}
    found, told = taken_files(lab05, {**notebook, **odd}, "canvas")
    link = zipfile.ZipInfo("own_after.json.gz")
    link.external_attr = 0o120777 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr(link, "/etc/passwd")
    _, linked = taken_files(lab05, {**notebook, "oneilann_102_9004_a.zip": buffer.getvalue()}, "canvas", "2.zip")
    _, escaping = taken_files(
        lab05, {**notebook, "oneilann_102_9005_b.zip": zipped({"../own_after.json.gz": b"x"})}, "canvas", "3.zip"
    )

    assert [] == found
    assert "own_before.json.gz was left out: it has 5,000,001 bytes" in told
    assert "links are not followed" in linked
    assert "would be written outside" in escaping


def test_a_file_that_a_browser_has_unpacked_is_packed_again(lab05: Course):
    notebook = {f"oneilann_102_9001_{lab05.lab}.ipynb": json.dumps(lab05.released()).encode()}
    plain = {f"oneilann_102_{9002 + n}_{file.removesuffix('.gz')}": b'{"a": 1}' for n, file in enumerate(FILES)}

    assert [b'{"a": 1}'] * 2 == [
        gzip.decompress(data) for data in taken_files(lab05, {**notebook, **plain}, "canvas")[0]
    ]
