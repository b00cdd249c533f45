"""course.toml: what it may say, what it may not, and what lateness costs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from edl_labs.course.policy import DAY_S, CoursePolicy, LatePolicy, read_policy
from edl_labs.errors import UsageError

GOOD = """
[course]
name = "Efficient Deep Learning"
timezone = "Europe/Berlin"
[late]
grace_minutes = 15
per_day = 0.1
at_most = 0.5
closes_after_days = 7
[[assignment]]
name = "lab01_gpu_basics"
due = 2026-07-01T23:59:00
[assignment.extensions]
"ana@x.org" = 2026-07-03
"""


def policy(folder: Path, text: str) -> CoursePolicy:
    (folder / "course.toml").write_text(text, encoding="utf-8")
    return read_policy(folder)


def test_times_without_offset_are_the_courses_own(tmp_path: Path) -> None:
    dates = policy(tmp_path, GOOD).dates("lab01_gpu_basics")

    assert datetime(2026, 7, 1, 21, 59, tzinfo=UTC) == dates.due
    assert datetime(2026, 7, 3, 21, 59, 59, tzinfo=UTC) == dates.due_for("ana@x.org")
    assert dates.due == dates.due_for("bob")


def test_no_file_means_no_dates_and_no_penalty(tmp_path: Path) -> None:
    found = read_policy(tmp_path)

    assert None is found.dates("lab01").due
    assert 0.0 == found.late.penalty(20.0, late_s=1e9)


@pytest.mark.parametrize(
    ("late_s", "lost"),
    [(0, 0), (900, 0), (901, 2), (DAY_S, 2), (DAY_S + 1, 4), (4.5 * DAY_S, 10), (7 * DAY_S, 10), (7 * DAY_S + 1, 20)],
)
def test_penalty_by_days_begun_up_to_the_most_and_all_when_closed(late_s: float, lost: float) -> None:
    rules = LatePolicy(grace_s=900, per_day=0.1, at_most=0.5, closes_after_s=7 * DAY_S)

    assert lost == pytest.approx(rules.penalty(20.0, late_s=late_s))


def test_no_penalty_takes_more_than_there_is() -> None:
    rules = LatePolicy(per_day=1.0)

    assert 0.0 == rules.penalty(0.0, late_s=1e9)
    assert 3.0 == rules.penalty(3.0, late_s=1e9)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("per_day", "per_dya"), "per_dya"),
        (("per_day = 0.1", "per_day = 10"), "per_day is 10"),
        (("per_day = 0.1", "per_day = true"), "per_day is True"),
        (("per_day = 0.1", "per_day = nan"), "per_day is nan"),
        (("Europe/Berlin", "Europe/Atlantis"), "Atlantis"),
        (("due = 2026-07-01T23:59:00", 'due = "tomorrow"'), "due of lab01_gpu_basics"),
        (("2026-07-03", "2026-06-01"), "ends before"),
        (("[[assignment]]", "[assignment]"), "`assignment` is not a list"),
        (("[late]", "late = 3\n[other]"), "no"),
        (('name = "lab01_gpu_basics"', ""), "has no name"),
        (("[course]", "[course"), "cannot be read"),
    ],
    ids=lambda v: str(v)[:30],
)
def test_what_it_cannot_mean_is_refused(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        policy(tmp_path, GOOD.replace(*change))


def test_a_second_entry_for_one_lab_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="twice"):
        policy(tmp_path, GOOD + '[[assignment]]\nname = "lab01_gpu_basics"\n')


@pytest.mark.parametrize(
    ("change", "line", "then"),
    [
        (("per_day = 0.1", "per_dya = 0.1"), 7, "did you mean per_day?"),
        (("per_day = 0.1", "per_day = 10"), 7, "write, for example, per_day = 0.1"),
        (("due = 2026", "deu = 2026"), 12, "did you mean due?"),
        (('name = "lab01_gpu_basics"', ""), 10, 'write name = "lab01_gpu_basics"'),
    ],
)
def test_a_refusal_says_the_line_and_what_to_write(
    tmp_path: Path, change: tuple[str, str], line: int, then: str
) -> None:
    with pytest.raises(UsageError) as refused:
        policy(tmp_path, GOOD.replace(*change))

    assert refused.value.why.startswith(f"line {line}")
    assert then == refused.value.next
