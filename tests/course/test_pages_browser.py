"""Nothing that a student wrote runs, loads or breaks out in a page of a browser: formgrader's, nbgrader's, ours."""

from __future__ import annotations

import http.server
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import grade
from edl_labs.course.marks.class_page import write_report
from edl_labs.course.marks.class_report import class_report
from edl_labs.course.marks.feedback import feedback
from tests.attacks.page_evasions import ALL, BEACON, NAMES, RAN
from tests.course.browser import NEEDS_BROWSER, page_after
from tests.course.course_fixture import LAB, Course, cell_of, solve_cell
from tests.course.formgrader import formgrader

pytestmark = NEEDS_BROWSER
_SHOWN = "from IPython.display import display\nfor text in {texts!r}:\n    display({{{kind!r}: text}}, raw=True)"
_KINDS = ("text/html", "text/markdown", "text/latex", "image/svg+xml", "application/javascript", "text/plain")


@pytest.fixture
def beacon() -> Iterator[tuple[str, list[str]]]:
    """An address on this machine, and what was asked of it."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/beacon", asked
    server.shutdown()


def ran(document: str) -> bool:
    """Whether anything did what the evasions try: a mark on the root element."""
    return bool(re.search(r"<html[^>]* data-ran=", document))


def hostile(course: Course, evasions: list[str]) -> nbformat.NotebookNode:
    """A submission with every evasion in prose, in a prose answer, in outputs of every kind, and in code."""
    texts = {"area": solve_cell("area", body="raise ValueError(repr(" + repr("".join(evasions)) + "))")}
    notebook = course.answered(texts)
    cell_of(notebook, "why_square")["source"] = "Because.\n\n" + "\n\n".join(evasions)
    notebook.cells += [new_markdown_cell(f"{text}\n\nmy text") for text in evasions]
    notebook.cells += [new_code_cell(_SHOWN.format(texts=evasions, kind=kind)) for kind in _KINDS]
    pictures = {f'a.png" {text}': {"image/png": f'AA" {text}', "text/html": text} for text in evasions}
    notebook.cells.append(new_markdown_cell("![x](attachment:a.png)", attachments=pictures))
    notebook.metadata["authors"] = [{"name": "".join(evasions)}]
    return notebook


def test_the_browser_runs_and_loads_what_is_not_cleaned(tmp_path: Path, beacon: tuple[str, list[str]]):
    address, asked = beacon
    page = tmp_path / "page.html"
    page.write_text(f"<p>page<img src='{address}'><img src=x onerror={RAN}>")

    assert ran(page_after(page.as_uri(), tmp_path / "profile"))
    assert ["/beacon"] == asked


def test_no_name_in_a_page_runs(released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copytree(released.root, tmp_path / "course")
    course = Course(tmp_path / "course")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    monkeypatch.setattr(class_kernels, "ALWAYS", ("edl_labs", "numpy"))
    called = "".join(name for name in NAMES if name.isprintable())
    course.nbgrader("db", "student", "add", "ada", f"--first-name=Ada{called}", f"--last-name=Lovelace{called}")
    # Zero and slash are in no file's name; what is no UTF-8 makes nbgrader's own lists fail.
    folders = [name for name in NAMES if not {"\0", "/", "\udcff"} & set(name)]
    for name in ("ada", *folders):
        course.submit(name, course.answered(prose="So."))
    folder = Repository(course.root)
    rows = grade(LAB, course=folder, jobs=1).rows
    feedback(LAB, course=folder)
    report, solutions = class_report(LAB, course=folder)
    write_report(report, solutions, tmp_path / "report.html")
    page = folder.path("feedback", student="ada", assignment=LAB) / f"{LAB}.html"
    documents = {
        path.stem: page_after(path.as_uri(), tmp_path / "profile") for path in (page, tmp_path / "report.html")
    }
    with formgrader(course) as server:
        (shown,) = server.api(f"submitted_notebooks/{LAB}/{LAB}")
        pages = (f"submissions/{shown['id']}/", f"manage_submissions/{LAB}", "manage_students")
        documents |= {path: server.seen(path, tmp_path / "profile") for path in pages}

    assert {"graded": 1, "unreadable": len(folders)} == Counter(row.state for row in rows)
    assert all("rename it to the student's id" in row.remarks[0] for row in rows if row.state == "unreadable")
    assert [] == [name for name, document in documents.items() if ran(document)]
    assert [] == [name for name in (LAB, *pages) if "Lovelace" not in documents[name]]
    assert [] == [name for name in ("`${document.title}`", "ada\\", " ada") if name not in documents[pages[1]]]


def test_nothing_in_a_page_runs(
    released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beacon: tuple[str, list[str]]
):
    shutil.copytree(released.root, tmp_path / "course")
    course, (address, asked) = Course(tmp_path / "course"), beacon
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    monkeypatch.setattr(class_kernels, "ALWAYS", ("edl_labs", "numpy"))
    evasions = [text.replace(BEACON, address).replace("127.0.0.1:9", address.split("/")[2]) for text in ALL]
    course.submit("mallory", hostile(course, evasions))
    course.submit("ada", course.answered(prose="So."))
    folder = Repository(course.root)
    assert {"graded"} == {row.state for row in grade(LAB, course=folder, jobs=1).rows}
    course.nbgrader("generate_feedback", LAB, "--student=mallory", "--force")
    pages = {"nbgrader's feedback": course.root / "course" / "feedback" / "mallory" / LAB / f"{LAB}.html"}
    assert "my text" in pages["nbgrader's feedback"].read_text()
    documents = {"nbgrader's feedback": page_after(pages["nbgrader's feedback"].as_uri(), tmp_path / "profile")}
    feedback(LAB, course=folder)
    report, solutions = class_report(LAB, course=folder)
    write_report(report, solutions, tmp_path / "report.html")
    documents["our feedback"] = page_after(pages["nbgrader's feedback"].as_uri(), tmp_path / "profile")
    documents["report"] = page_after((tmp_path / "report.html").as_uri(), tmp_path / "profile")
    with formgrader(course) as server:
        (shown,) = [n for n in server.api(f"submitted_notebooks/{LAB}/{LAB}") if n["student"] == "mallory"]
        documents["formgrader"] = server.seen(f"submissions/{shown['id']}/", tmp_path / "profile")

    assert 4 == len(documents)
    for name, document in documents.items():
        assert not ran(document), name
        assert name == "report" or document.count("my text") > 0.95 * len(evasions), name  # a few swallow what follows
        assert not re.search(r'<\w[^<>]*\shref="\s*(javascript|vbscript|data):', document, re.IGNORECASE), name
    assert [] == asked
