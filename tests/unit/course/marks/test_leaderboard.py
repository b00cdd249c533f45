"""Who came nearest to light: places, ties, pseudonyms, the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.cli.outside import hidden
from edl_labs.course.marks.leaderboard import Leaderboard, pseudonyms, ranks, standings, write_page


def entry(share: float, peak_bytes: float = 1e9, money: float = 1.0) -> dict[str, float]:
    return {"share": share, "peak_bytes": peak_bytes, "money": money}


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
    assert not ranks({"share": 1.0, "money": 2.0})


def test_pseudonyms_are_the_same_again_different_from_each_other_and_others_with_another_seed() -> None:
    students = [f"s{number}" for number in range(400)]  # more than there are colours and animals
    names = pseudonyms(students, b"7")

    assert names == pseudonyms(reversed(students), b"7")
    assert 400 == len(set(names.values()))
    assert names != pseudonyms(students, b"8")


def test_the_page_names_nobody_loads_nothing_and_is_loaded_anew_when_asked(entries, tmp_path: Path) -> None:
    rows = standings(entries, pseudonyms(entries, b"7"))
    board = Leaderboard("lab10b_within_the_budget", "score", rows)
    write_page([board], tmp_path / "still.html", timelines=0)
    write_page([board], tmp_path / "live.html", refreshed=True, timelines=20)
    still, live = ((tmp_path / name).read_text(encoding="utf-8") for name in ("still.html", "live.html"))

    assert not any(f">{student}<" in still for student in entries)
    assert all(row.name in still for row in rows)
    assert "90.0%" in still
    assert 'http-equiv="refresh"' not in still
    assert 'http-equiv="refresh" content="20"' in live
    assert "src=" not in still


def test_json_without_names_has_no_ids(entries) -> None:
    board = Leaderboard("lab10b_within_the_budget", "score", standings(entries, pseudonyms(entries, b"7"))).to_json()

    assert not any("student" in row for row in hidden(board, named=False)["standings"])
    assert "di" == hidden(board, named=True)["standings"][0]["student"]
