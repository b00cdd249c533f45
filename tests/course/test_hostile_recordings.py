"""Hostile recordings through each form of a download: every notebook is collected, and a sentence names each file."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade.classrun import grade
from edl_labs.course.marks.class_report import class_report
from edl_labs.course.marks.collect import Collected, collect
from edl_labs.trace.packed_trace import FILES
from tests.course.course_fixture import Course, make_lab_course, solved
from tests.unit.trace.hostile_files import hostile

LAB = "lab05_profiling"
BEFORE, AFTER = FILES
FORMS = ("zip", "uploads", "moodle", "canvas", "dir")
READ_LATER = {  # collected as they are; what the process that reads them says
    "bomb": ("a bomb", "unpacks to more than 200 MB"),
    "deep": ("deep", "was not written by hand_in"),
    "events": ("objects without end", "too many events"),
    "plain": ("no gzip", "was not written by hand_in"),  # as a browser unpacks: it is packed again
    "text": ("no JSON", "was not written by hand_in"),
    "short": ("cut off", "is truncated"),
}


@cache
def pairs() -> dict[str, tuple[dict[str, bytes], str]]:
    """By student the files that are handed in, and what `collect` remarks; '' where it says nothing of them."""
    whole = b"\x1f\x8b whole"
    return {
        **{student: (dict.fromkeys(FILES, hostile()[kind][0]), "") for student, (kind, _) in READ_LATER.items()},
        "large": ({BEFORE: b"\x1f" * 5_000_001, AFTER: whole}, "own_before.json.gz was left out: it has 5,000,001"),
        "zeros": (
            {BEFORE: bytes(140 << 20), AFTER: whole},
            "own_before.json.gz was left out: it has more than 128 MiB",
        ),
        "half": ({BEFORE: whole}, "missing next to the notebook: own_after.json.gz"),
        "formula": ({"=cmd|' x'!A1.json.gz": whole}, "missing next to the notebook: own_before.json.gz, own_after"),
        "alike": (
            {"\u043ewn_before.json.gz": whole, AFTER: whole},
            "'\\u043ewn_before.json.gz' was left out; check whether it is own",
        ),
        "acting": ({"\x1b[2J\u202eown_after.json.gz": whole}, "\ufffd[2J\ufffdown_after.json.gz"),
        "capitals": ({"Own_Before.JSON.GZ": whole, AFTER.upper(): whole}, ""),
    }


def zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return buffer.getvalue()


def download(
    form: str, notebook: bytes, folder: Path, handed_in: Mapping[str, Mapping[str, bytes]]
) -> tuple[Path, str]:
    """A class' download in a form, and what `collect --from` calls it."""
    uploads: dict[str, bytes] = {}
    numbers = {student: number for number, student in enumerate(["ann", *pairs()], start=100)}
    for student, files in handed_in.items():
        number = numbers[student]
        own = {f"{LAB}.ipynb": notebook, **files}
        if form == "zip":
            own = {f"{LAB}.zip": zipped({f"work/{name}": data for name, data in own.items()})}
        for upload, (name, data) in enumerate(own.items()):
            path = {
                "moodle": f"{student} x_{number}_assignsubmission_file_/{name}",
                "dir": f"{student}/{name}",
            }.get(form, f"x{student}_{number}_{number}{upload:03}_{name}")
            uploads[path] = data
    if form != "dir":
        (folder / "all.zip").write_bytes(zipped(uploads))
        return folder / "all.zip", "moodle" if form == "moodle" else "canvas"
    for path, data in uploads.items():
        (folder / "all" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "all" / path).write_bytes(data)
    return folder / "all", "dir"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course around lab05 with one student for each kind of file."""
    made = make_lab_course(tmp_path, LAB)
    students = ["ann", *pairs()]
    rows = [f"{s},{s},x,{s}@x.org,{number}" for number, s in enumerate(students, start=100)]
    (made.root / "roster.csv").write_text("\n".join(["id,first_name,last_name,email,canvas_id", *rows]))
    return made


def taken(course: Course, source: Path, kind: str) -> dict[str, Collected]:
    repository = Repository(course.root)
    found = collect(LAB, source, kind=kind, course=repository, roster=course.root / "roster.csv")
    assert () == found.unmatched
    return {row.student: row for row in found.rows}


def beside(course: Course, student: str) -> set[str]:
    return {path.name for path in (course.root / "course" / "submitted" / student / LAB).glob("own_*")}


@pytest.mark.parametrize("form", FORMS)
def test_each_notebook_is_collected_and_a_sentence_names_each_file(form: str, course: Course, tmp_path: Path) -> None:
    notebook = json.dumps(course.released()).encode()
    handed_in = {"ann": course.handed_in, **{student: files for student, (files, _) in pairs().items()}}
    source, kind = download(form, notebook, tmp_path, handed_in)
    if form == "dir":
        os.mkfifo(source / "half" / AFTER)
        (source / "formula" / BEFORE).symlink_to("/dev/zero")
        (source / "formula" / AFTER).symlink_to(source / "ann" / AFTER)
    rows = taken(course, source, kind)

    assert dict.fromkeys(["ann", *pairs()], "new") == {student: row.state for student, row in rows.items()}
    assert {"ann"} == {
        student for student, row in rows.items() if row.problem == "" and set(FILES) == beside(course, student)
    } - set(READ_LATER) - {"capitals"}
    assert set(FILES) == beside(course, "capitals")
    assert set() == beside(course, "formula")
    for student, (_, told) in pairs().items():
        assert told in "; ".join(rows[student].remarks)


def test_of_one_students_archive_only_what_leaves_it_is_left_out(course: Course, tmp_path: Path) -> None:
    notebook = json.dumps(course.released()).encode()
    link = zipfile.ZipInfo(AFTER)
    link.external_attr = 0o120777 << 16
    archives = {}
    for student, odd in {
        "half": f"../{AFTER}",
        "short": f"/etc/{AFTER}",
        "deep": link,
        "plain": f"C:\\{AFTER}",
    }.items():
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as packed:
            packed.writestr(f"{LAB}.ipynb", notebook)
            packed.writestr(BEFORE, b"\x1f\x8b whole")
            packed.writestr(odd, b"/etc/passwd")
        archives[f"{student}/work.zip"] = buffer.getvalue()
    (tmp_path / "all.zip").write_bytes(zipped(archives))
    rows = taken(course, tmp_path / "all.zip", "dir")

    for student in ("half", "short", "deep", "plain"):
        told = "; ".join(rows[student].remarks)

        assert rows[student].state == "new"
        assert {BEFORE} == beside(course, student)
        assert f"{AFTER} was left out: " in told
        assert f"missing next to the notebook: {AFTER}" in told


def test_the_newest_of_two_sets_of_different_times_is_kept_together(course: Course, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    notebook = json.dumps(course.released()).encode()
    for time, files in {"09-00": FILES, "10-00": FILES, "11-00": (AFTER,)}.items():
        for name, data in {f"{LAB}.ipynb": notebook, **dict.fromkeys(files, f"\x1f{time}".encode())}.items():
            (tmp_path / "all" / f"ann_2026-11-20-{time}-00_{name}").write_bytes(data)
    pattern = r"(?P<user>ann)_(?P<time>[\d-]+)_(?P<file>.+)"
    roster = course.root / "roster.csv"
    collect(LAB, tmp_path / "all", kind="dir", pattern=pattern, course=Repository(course.root), roster=roster)
    folder = course.root / "course" / "submitted" / "ann" / LAB

    assert [b"\x1f10-00"] * 2 == [(folder / name).read_bytes() for name in FILES]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_notebook_is_graded_and_the_traces_alone_earn_nothing(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    handed_in = {
        "ann": course.handed_in,
        **{student: pairs()[student][0] for student in (*READ_LATER, "large", "alike")},
    }
    taken(course, *download("zip", json.dumps(solved(course)).encode(), tmp_path, handed_in))
    report = grade(LAB, course=Repository(course.root), jobs=2)
    marks = {row.student: dict(row.marks) for row in report.rows}
    overview, _ = class_report(LAB, course=Repository(course.root))
    flags = {student: "; ".join(found) for student, found in overview.flags}

    assert 3 == marks["ann"].pop("own_traces")
    for student in handed_in.keys() - {"ann"}:
        assert 0 == marks[student].pop("own_traces"), student
        assert marks["ann"] == marks[student]
    for student, (_, told) in READ_LATER.items():
        assert told in flags[student]
