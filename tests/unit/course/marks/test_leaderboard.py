"""Who has the highest efficiency: places, ties, pseudonyms, the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edl_labs.cli import app, outside
from edl_labs.cli.outside import hidden
from edl_labs.course.course_folder import Course
from edl_labs.course.marks import leaderboard
from edl_labs.course.marks.leaderboard import Leaderboard, pseudonyms, ranks, standings, write_page
from edl_labs.errors import NothingToDo
from tests.course.course_fixture import REPOSITORY

LAB = "lab10b_within_the_budget"


def entry(efficiency: float, peak_bytes: float = 1e9, money: float = 1.0) -> dict[str, float]:
    return {"efficiency": efficiency, "peak_bytes": peak_bytes, "money": money}


@pytest.fixture
def entries() -> dict[str, dict[str, float]]:
    return {
        "ana": entry(0.7),
        "bo": entry(0.9, money=2.0),
        "cy": entry(0.9, money=1.5),
        "di": entry(0.9, peak_bytes=9e8, money=9.0),
        "ed": entry(0.7),
    }


def test_ties_go_to_less_memory_then_to_less_money_and_equals_share_a_place(entries) -> None:
    rows = standings(entries, {})

    assert [(1, "di"), (2, "cy"), (3, "bo"), (4, "ana"), (4, "ed")] == [(row.place, row.student) for row in rows]


def test_what_is_no_whole_entry_is_not_ranked() -> None:
    assert ranks({**entry(0.5), "makespan_s 0": 1.0})
    assert not ranks({})
    assert not ranks({"efficiency": 1.0, "money": 2.0})


def test_pseudonyms_are_the_same_again_different_from_each_other_and_others_with_another_seed() -> None:
    students = [f"s{number}" for number in range(400)]  # more than there are colours and animals
    names = pseudonyms(students, b"7")

    assert names == pseudonyms(reversed(students), b"7")
    assert 400 == len(set(names.values()))
    assert names != pseudonyms(students, b"8")


def test_the_page_names_nobody_loads_nothing_and_is_loaded_anew_when_asked(entries, tmp_path: Path) -> None:
    rows = standings(entries, pseudonyms(entries, b"7"))
    board = Leaderboard(LAB, "score", rows)
    write_page(LAB, [board], tmp_path / "still.html", instructor=True)
    write_page(LAB, [board], tmp_path / "live.html", refreshed=True)
    still, live = ((tmp_path / name).read_text(encoding="utf-8") for name in ("still.html", "live.html"))

    assert not any(f">{student}<" in still for student in entries)
    assert all(row.name in still for row in rows)
    assert "90.0%" in still
    assert 'http-equiv="refresh"' not in still
    assert 'http-equiv="refresh" content="20"' in live
    assert "src=" not in still


def test_a_page_for_students_has_no_number_that_a_program_could_choose(entries, tmp_path: Path) -> None:
    rows = standings(entries, pseudonyms(entries, b"7"))
    pages = []
    for peak_bytes, money, more in ((1e9, 1.0, 0.001), (3.456789e9, 7.891, 0.009)):
        told = [
            replace(row, peak_bytes=peak_bytes, money=money, efficiency=int(100 * row.efficiency) / 100 + more)
            for row in rows
        ]
        write_page(LAB, [Leaderboard(LAB, "score", tuple(told))], tmp_path / "page.html")
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))

    assert pages[0] == pages[1]
    assert "90%" in pages[0]


def test_json_without_names_has_no_ids(entries) -> None:
    board = Leaderboard(LAB, "score", standings(entries, pseudonyms(entries, b"7"))).to_json()

    assert not any("student" in row for row in hidden(board, named=False)["standings"])
    assert "di" == hidden(board, named=True)["standings"][0]["student"]


def test_a_page_of_nobody_says_so_and_is_loaded_anew(tmp_path: Path) -> None:
    write_page(LAB, [], tmp_path / "page.html", refreshed=True)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert "No entry is ranked yet" in page
    assert 'http-equiv="refresh"' in page
    assert "reloads every 20 seconds" in page


def test_following_says_what_it_waits_for_then_who_came_and_leaves_a_page_that_stays(
    entries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Leaderboard(LAB, "score", standings(entries, pseudonyms(entries, b"7")))
    states: list[tuple[Leaderboard, ...]] = [(), (), (board,), (board,)]
    path, live = tmp_path / "board.html", []

    def so_far(*_: object, **__: object) -> tuple[Leaderboard, ...]:
        found = states.pop(0) if len(states) > 1 else states[0]
        if not found:
            raise leaderboard.NobodyRanked(LAB)
        return found

    def pause(_: float) -> None:
        live.append("http-equiv" in path.read_text(encoding="utf-8"))
        if len(live) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(leaderboard, "leaderboards", so_far)
    monkeypatch.setattr(outside.time, "sleep", pause)
    asked = ["leaderboard", LAB, "--html", str(path), "--follow", "--no-instructor"]
    done = CliRunner().invoke(app, asked)

    assert 0 == done.exit_code, done.output
    assert [True] * 4 == live
    assert 1 == done.stderr.count("no entry is ranked yet; run edl-labs grade lab10b_within_the_budget")
    assert 1 == done.stderr.count("5 students ranked")
    assert 'http-equiv="refresh"' not in path.read_text(encoding="utf-8")
    assert "90.0%" in done.stdout


def test_following_a_lab_without_a_score_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    # A fresh checkout has no built notebooks, and none is looked into.
    monkeypatch.setattr(Course, "assignment", lambda *_: None)
    done = CliRunner().invoke(app, ["leaderboard", "lab01_gpu_basics", "--html", str(tmp_path / "a.html"), "--follow"])

    assert isinstance(done.exception, NothingToDo)
    assert "none of its exercises has a score" == done.exception.why
    assert not (tmp_path / "a.html").exists()
