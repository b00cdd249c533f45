"""The report on a class as one page that an instructor looks at between lectures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import pairwise
from pathlib import Path
from statistics import median

from edl_labs.course.grade.files import write_atomically
from edl_labs.course.marks.class_report import ClassOverview, ExerciseOverview
from edl_labs.course.marks.leaderboard import Leaderboard
from edl_labs.course.marks.similarity import Pair
from edl_labs.course.pages.shell import render
from edl_labs.units import counted, seconds

_TRUSTING = "trusting marks"  # the flag of a result that many have, wherever a lab asks for it
_FIFTHS = 5  # bars of points that fit beside each other on a narrow page
_NAMES_SHOWN = 20  # three lines of the page
_PAIRS_SHOWN = 30  # as many as a person looks through; the JSON has all
_Lines = list[tuple[str, bool]]


def write_report(
    report: ClassOverview, solutions: Mapping[str, Mapping[str, str]], path: Path, *, boards: Sequence[Leaderboard] = ()
) -> None:
    """The report as one HTML file that needs nothing else; leaderboards, if there are any, stand in it."""
    text = render(
        "class_report.html",
        report=report,
        boards=boards,
        summary=_summary(report),
        points=_points(report),
        share_labels=("none", "to 25%", "to 50%", "to 75%", "below all", "all"),
        facts=_facts,
        examples=lambda exercise: _examples(exercise, solutions),
        bars=bars,
        odd=_odd(report),
        solutions=solutions,
        pairs=[(pair, _side_by_side(pair, solutions)) for pair in report.pairs[:_PAIRS_SHOWN]],
        more_pairs=max(0, len(report.pairs) - _PAIRS_SHOWN),
    )
    write_atomically(path, text.encode("utf-8", "replace"))


def bars(counts: Sequence[int], labels: Sequence[str]) -> str:
    """A histogram as an inline picture that takes its colours from the page; counts stand above the bars.

    >>> bars((0, 2), ("none", "all")).count("<rect")
    2
    """
    most, width, height, gap = max((*counts, 1)), 64, 90, 10
    parts = []
    for index, (count, label) in enumerate(zip(counts, labels, strict=True)):
        tall, left = round(height * count / most, 1), index * (width + gap)
        middle = left + width / 2
        parts.append(f'<rect x="{left}" y="{16 + height - tall}" width="{width}" height="{tall}" rx="2"/>')
        parts.append(f'<text x="{middle}" y="{11 + height - tall}">{count or ""}</text>')
        parts.append(f'<text x="{middle}" y="{height + 32}" class="dim">{escape(label)}</text>')
    whole = len(counts) * (width + gap)
    said = ", ".join(f"{label}: {count}" for count, label in zip(counts, labels, strict=True))
    size = f'viewBox="0 0 {whole} {height + 40}" width="{whole}" height="{height + 40}"'
    return f'<svg class="bars" {size} role="img" aria-label="{escape(said)}">{"".join(parts)}</svg>'


def _odd(report: ClassOverview) -> list[tuple[str, str]]:
    """Whom a person should look at, and why; marks that rest on students' own processes come last, in one line."""
    notes = dict(report.notes)
    found = []
    for who, flags in report.flags:
        told = [flag for flag in flags if flag not in (_TRUSTING, "mended")] + list(notes.get(who, ()))
        found += [(who, "; ".join(told))] if told else []
    found += [(who, f"could not be graded: {why}") for who, why in report.why_unread]
    trusting = [who for who, flags in report.flags if _TRUSTING in flags]
    if trusting:
        first = f"{', '.join(trusting[:_NAMES_SHOWN])}{', …' if len(trusting) > _NAMES_SHOWN else ''}"
        said = f"have points that depend on their own process (trusting): {first}"
        found.append((counted(len(trusting), "student"), said))
    return found


def _points(report: ClassOverview) -> tuple[list[int], list[str]]:
    """Students by fifths of the points, as counts and labels."""
    edges = [report.max_points * n / _FIFTHS for n in range(_FIFTHS + 1)]
    counts = [sum(low <= p < high for p in report.points) for low, high in pairwise(edges)]
    counts[-1] += sum(p >= report.max_points for p in report.points)
    return counts, [f"{low:g}–{high:g}" for low, high in pairwise(edges)]


def _summary(report: ClassOverview) -> str:
    parts = [counted(report.students, "student")]
    if report.points:
        parts.append(f"median {median(report.points):g} of {report.max_points:g} points")
    if report.at_work:
        of = counted(len(report.at_work), "notebook")
        parts.append(f"median {median(report.at_work):.0f} min of work (in {of} with recorded times)")
    if report.minutes:
        took = median(report.minutes)
        parts.append(f"median grading time {f'{took:.1f} min' if took >= 1 else seconds(60 * took, digits=2)}")
    return f"{', '.join(parts)}."


def _facts(exercise: ExerciseOverview) -> str:
    marked = len(exercise.shares)
    of_marked = f" over the {counted(marked, 'answer')} marked so far" if exercise.waiting else ""
    facts = (
        [f"{exercise.mean:.0%} of {counted(exercise.max_points, 'point')} on average{of_marked}"]
        if exercise.shares
        else []
    )
    facts += [f"{exercise.left_empty} left empty"] if exercise.left_empty else []
    facts += ["practice without points"] if not exercise.max_points else []
    facts += [f"{exercise.not_attempted} not attempted"] if exercise.not_attempted else []
    facts += [f"{exercise.waiting} not yet marked"] if exercise.waiting else []
    if exercise.hints:
        shown = counted(len(exercise.hints), "notebook")
        facts.append(f"{shown} with hints (median {median(exercise.hints):g})")
    return f"{'; '.join(facts)}."


def _examples(
    exercise: ExerciseOverview, solutions: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, int, str, str]]:
    """Each mistake with its number, a student who made it, and what that student wrote."""
    counts = dict(exercise.mistakes)
    return [(what, counts[what], who, solutions.get(who, {}).get(exercise.name, "")) for what, who in exercise.examples]


def _side_by_side(pair: Pair, solutions: Mapping[str, Mapping[str, str]]) -> list[tuple[str, tuple[_Lines, _Lines]]]:
    found = []
    for name in pair.exercises:
        left, right = (solutions[who].get(name, "") for who in (pair.first, pair.second))
        found.append((name, (_marked(left, right), _marked(right, left))))
    return found


def _marked(text: str, other: str) -> _Lines:
    """The lines of one side, each with whether the other side has it too."""
    mine, theirs = text.split("\n"), other.split("\n")
    matcher = SequenceMatcher(None, [m.strip() for m in mine], [t.strip() for t in theirs], autojunk=False)
    same: set[int] = set()
    for block in matcher.get_matching_blocks():
        same.update(range(block.a, block.a + block.size))
    return [(line, index in same and bool(line.strip())) for index, line in enumerate(mine)]
