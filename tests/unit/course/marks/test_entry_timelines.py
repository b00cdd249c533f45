"""A leaderboard's entries step by step: the page, what it shows of the instructor's program, the table, the trace."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edl_labs.checks import Outcome
from edl_labs.cli import app
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.judge_process import public
from edl_labs.course.marks import leaderboard
from edl_labs.course.marks.entry_timelines import NOT_KEPT, compact_svg, entry_timelines, is_over
from edl_labs.course.marks.leaderboard import Leaderboard, Standing, found_entry, write_page
from edl_labs.errors import UsageError

LAB = "lab10b_within_the_budget"


def run_of(gpus: int, sum_s: float) -> dict[str, object]:
    """Two steps of 2 ms of kernels and a sum in between."""
    ns, ends = round(sum_s * 1e9), (2e-3 + sum_s, 4e-3 + 2 * sum_s)
    bars = []
    for at in (0, 2_000_000 + ns):
        bars.append(["k", "forward 0", at, at + 900_000])
        bars.append(["k", "backward 0", at + 900_000, at + 1_900_000])
        bars.append(["s", "sum 0", at + 1_900_000, at + 1_900_000 + ns])
        bars.append(["k", "update 0 1", at + 1_900_000 + ns, at + 2_000_000 + ns])
    return {"gpus": gpus, "steps": [[end, 2e-3, 0.0, sum_s, 0.0, 0.0] for end in ends], "bars": bars, "left_out": 0}


KEPT = {"case": "the job of a test", "theirs": run_of(2, 2e-3), "reference": run_of(4, 5e-4)}


@pytest.fixture
def board() -> Leaderboard:
    rows = (
        Standing(1, "blue finch", "ana", 0.9, 1e9, 1.0, timelines=KEPT),
        Standing(2, "coral lynx", "bo", 0.8, 1e9, 1.0),
        Standing(3, "jade owl", "cy", 0.7, 1e9, 1.0, timelines=KEPT),
    )
    return Leaderboard(LAB, "score", rows)


class Tags(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def page_of(board: Leaderboard, path: Path, **options: object) -> str:
    write_page(LAB, [board], path, **options)  # type: ignore[arg-type]
    return path.read_text(encoding="utf-8")


def drawn(tags: Tags) -> list[str]:
    return [b64decode(str(one["src"]).partition("base64,")[2]).decode() for one in tags.of("img")]


def test_each_row_leads_to_pictures_of_every_step_that_say_what_they_show(board, tmp_path: Path) -> None:
    page = page_of(board, tmp_path / "page.html", instructor=True)
    tags = Tags(page)
    names = [str(one["alt"]) for one in tags.of("img")]

    ids = [one["id"] for _, one in tags.found if "id" in one]
    assert {str(one["href"]).removeprefix("#") for one in tags.of("a")} <= set(ids)
    assert len(ids) == len(set(ids))
    assert 3 == len(tags.of("details"))
    assert 6 == len(names) == len(tags.of("input")) == len(tags.of("label"))  # two entries: the run and two steps
    assert "Step 0 as a timeline: blue finch 4 ms, the instructor's 2.5 ms; where they differ: sums +1.5 ms." in names
    assert all("the instructor&#x27;s" in text or "the instructor's" in text for text in drawn(tags))
    assert NOT_KEPT in page.lower()
    assert not tags.of("script")
    assert [] == [one["src"] for one in tags.of("img") if not str(one["src"]).startswith("data:image/svg+xml;base64,")]
    assert [] == re.findall(r'(?:href|src)="https?:', page)


def test_without_the_flag_no_timeline_is_on_the_page(board, tmp_path: Path) -> None:
    page = page_of(board, tmp_path / "page.html")
    tags = Tags(page)

    assert "instructor" not in page
    assert [] == drawn(tags)
    assert " ms" not in page
    assert not {"ana", "bo", "cy"} & set(re.findall(r"\w+", re.sub(r"base64,[^\"]*", "", page)))


def test_the_first_places_have_timelines_and_a_followed_page_none(
    board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard, "_UNFOLDED", 1)

    assert 1 == page_of(board, tmp_path / "one.html", instructor=True).count("<details")
    assert 0 == page_of(board, tmp_path / "live.html", instructor=True, refreshed=True).count("<details")


def test_old_results_are_shown_and_say_what_to_do(board) -> None:
    old = Outcome("score", LAB, "passed", 1.0, 1.0, entry={"share": 0.9}).to_json()
    del old["timelines"]

    assert {} == Outcome.from_json(old).timelines
    assert entry_timelines({}) is None
    assert entry_timelines({**KEPT, "theirs": {"gpus": "many"}}) is None
    with pytest.raises(UsageError, match="has no timeline") as found:
        found_entry([board], "coral lynx")
    assert NOT_KEPT == found.value.why
    with pytest.raises(UsageError, match="no entry is called ana"):
        found_entry([board], "ana")


def test_timelines_are_stored_and_never_in_what_students_get() -> None:
    outcome = Outcome("score", LAB, "passed", 1.0, 1.0, timelines=KEPT)

    assert KEPT == Outcome.from_json(json.loads(json.dumps(outcome.to_json()))).timelines
    assert {} == public(outcome).timelines
    assert "timelines" not in Standing(1, "blue finch", "ana", 0.9, 1e9, 1.0, timelines=KEPT).to_json()


def test_the_terminal_says_step_by_step_where_the_difference_lies(
    board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard, "leaderboards", lambda *_, **__: (board,))
    trace = tmp_path / "both.json"
    asked = ["leaderboard", LAB, "--entry", "blue finch"]
    told = CliRunner().invoke(app, [*asked, "--trace", str(trace)])
    data = CliRunner().invoke(app, [*asked, "--json"])

    assert 0 == told.exit_code, told.output
    lines = [" ".join(re.findall(r"[^\s│┃]+", line)) for line in told.output.splitlines()]
    assert "0 4 ms 2.5 ms +1.5 ms sums +1.5 ms" in lines
    assert "all 8 ms 5 ms +3 ms sums +3 ms" in lines
    assert "this entry rented 2 GPUs, the instructor's 4" in told.output
    assert "sums +1.5 ms" == json.loads(data.stdout)["steps"][1]["gap"]
    events = json.loads(trace.read_text())["traceEvents"]
    assert {"blue finch", "the instructor's"} == {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert [(0, 0), (0, 1), (1, 0), (1, 1)] == [
        (event["pid"], int(event["name"].split()[1])) for event in events if event["name"].endswith("ends")
    ]


def test_a_trace_is_of_one_entry() -> None:
    refused = CliRunner().invoke(app, ["leaderboard", LAB, "--trace", "t.json"])

    assert isinstance(refused.exception, UsageError)
    assert "--trace needs --entry" == refused.exception.what


def test_the_instructors_program_is_shown_once_the_last_date_is_over(tmp_path: Path) -> None:
    course = Course(tmp_path)
    at = datetime(2031, 5, 3, tzinfo=UTC)
    assert not is_over(course, LAB, now=at)  # no course.toml, no date
    dates = "due = 2031-05-01\nextensions = { ana = 2031-05-04 }\n"
    (tmp_path / "course.toml").write_text(f'[[assignment]]\nname = "{LAB}"\n{dates}')

    assert not is_over(course, LAB, now=at)
    assert is_over(course, LAB, now=at.replace(day=6))
    assert not is_over(course, "lab01_gpu_basics", now=at)


def test_pictures_made_small_have_the_same_bars() -> None:
    bar = '<path d="M 1.123456 2.5 \nL 3.987654 2.5 \nz\n" clip-path="url(#p1)" style="fill: #123456"/>'
    small = compact_svg(f"<svg><!-- a --><metadata>x</metadata>{bar}\n{bar.replace('1.1', '7.1')}\n<g>{bar}</g></svg>")

    assert 2 == small.count("<path")
    assert "M 1.12 2.5 L 3.99 2.5 z M 7.12 2.5 L 3.99 2.5 z" in small
    assert "metadata" not in small
