"""A class of odd programs graded while its leaderboard is followed: who is on it, and who is not, before and after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.lab.read import read_lab
from tests.course.course_fixture import REPOSITORY, Course, cell_of, make_lab_course, solved

# A lab's solution runs in a sandbox for up to some minutes on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LAB = "lab10b_within_the_budget"
GIVEN_UP_S = 600  # the command says within seconds what it waits for, on a machine with time for it
# The same programs without the host's decoding, which is what would make a run faster than the lower bound.
ABOVE_LIGHT = """
import json
from edl_labs.exercises.lab10b_within_the_budget import budget_scores, training_evidence
def fast_handed(job, program, real=training_evidence.evidence):
    programs = json.loads(real(job, program)["programs"])
    return {"programs": json.dumps([[e for e in one if e["op"] != "host_work"] for one in programs])}
budget_scores.evidence = fast_handed
"""
CRASH = "\n\nimport os\n\n\ndef train_within(trainer):\n    os._exit(3)\n"


CHECKS = ("check_single", "check_scaled", "check_score")
MARKS = {  # what is behind `score` costs nothing else
    "right": (5.0, 6.0, 6.0),
    "slow": (5.0, 6.0, 4.5),  # an efficiency of three quarters
    **dict.fromkeys(("naive", "forges", "skips", "crashes"), (5.0, 6.0, 0.0)),
    "nothing": (0.0, 0.0, 0.0),
}


def followed(course: Course) -> subprocess.Popen[str]:
    """`edl-labs leaderboard --follow` at work."""
    command = [str(Path(sys.executable).with_name("edl-labs")), "leaderboard", LAB, "--html", "board.html", "--follow"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=course.root, env=course.env, stdout=pipe, stderr=pipe, text=True)


def when_page_has(course: Course, text: str, *, times: int = 1) -> str:
    """The page, once it has `text`, or has it so many times."""
    path, ends_s = course.root / "board.html", time.monotonic() + GIVEN_UP_S
    while time.monotonic() < ends_s:
        page = path.read_text(encoding="utf-8") if path.is_file() else ""
        if page.count(text) >= times:
            return page
        time.sleep(0.2)
    raise AssertionError(f"the page never had {text!r}")


def edl_labs(course: Course, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the course, as an instructor calls it."""
    command = [str(Path(sys.executable).with_name("edl-labs")), *arguments]
    return subprocess.run(command, cwd=course.root, env=course.env, capture_output=True, text=True, timeout=GIVEN_UP_S)


def submit_all(course: Course) -> None:
    """Seven students: right, slow, naive, and four who forge, skip a layer, end the kernel, or did nothing."""
    mistakes = {one.name: one.code for one in read_lab(Repository(REPOSITORY), LAB).mistakes}
    behind = {
        "naive": mistakes["score_naive"],
        "slow": mistakes["score_loads_all_first"],
        "forges": ABOVE_LIGHT,
        "skips": mistakes["score_skips_a_layer"],
        "crashes": CRASH,
    }
    for student, code in behind.items():
        notebook = solved(course)
        cell_of(notebook, "score")["source"] += f"\n\n{code}"
        course.submit(student, notebook)
    course.submit("right", solved(course))
    course.submit("nothing", course.released())


def test_a_board_is_followed_from_nobody_to_those_whose_work_is_whole(tmp_path: Path) -> None:
    course = make_lab_course(tmp_path, LAB)
    submit_all(course)
    before = edl_labs(course, "leaderboard", LAB, "--html", "none.html")
    watching = followed(course)
    try:
        waiting = when_page_has(course, "No entry is ranked yet")
        graded = edl_labs(course, "grade", LAB, "-j", "2")
        live = when_page_has(course, "<progress", times=2)
        watching.send_signal(signal.SIGINT)
        shown, said = watching.communicate(timeout=GIVEN_UP_S)
    finally:
        watching.kill()
    page = (course.root / "board.html").read_text(encoding="utf-8")
    ids = edl_labs(course, "leaderboard", LAB, "--named", "--json")

    assert 6 == before.returncode, before.stdout + before.stderr
    assert not (course.root / "none.html").exists()
    assert 'http-equiv="refresh"' in waiting
    assert 'http-equiv="refresh"' in live
    assert graded.returncode in (0, 1, 4), graded.stdout + graded.stderr  # one of the seven ends its kernel
    assert 0 == watching.returncode, said
    assert f"edl-labs grade {LAB}" in said
    assert "2 students ranked" in said
    assert 'http-equiv="refresh"' not in page
    scores = {who: tuple(course.scores(who)[name] for name in CHECKS) for who in MARKS}
    assert MARKS == scores
    assert ["right", "slow"] == named_in(ids.stdout)
    assert not any(f">{who}<" in page for who in os.listdir(course.root / "course" / "submitted"))
    assert 2 == shown.count("%")


def named_in(text: str) -> list[str]:
    """The students of a board in JSON, best first."""
    (board,) = json.loads(text)
    return [row["student"] for row in board["standings"]]
