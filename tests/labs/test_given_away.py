"""What answers a box is not to be seen before its reveal, in no output either: all cells of each solved lab run here.

The build refuses the texts of `[gives_away]` in prose and code; what cells print and draw only running them shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.prediction_boxes import PredictionBox, prediction_boxes, read_too_early, shows
from edl_labs.course.lab.read import read_labs
from edl_labs.course.lab.source import Cell
from edl_labs.ui.number_entry import number_text
from tests.labs.shown_cells import ShownCell, executed

LABS = {lab.name: lab for lab in read_labs(Course(Path(__file__).resolve().parents[2]))}
# A number of the question, or of another thing: it is not read as the answer.
OTHER_NUMBERS = {
    "six_rows": "9976544",  # a row of the question's table: which row it is, is the question
    "int8_rule": "128",  # bytes, of which the question asks elements
    "most_a_second": "256",  # the critical batch, and the answer is 2.56
    "kept": "4096",  # the number of queries: the question asks for a ratio, which is as large
}
_NUMBER = re.compile(r"(?<![\w.])\d[\d,_\u2009\u202f]*(?:\.\d+)?(?:e[+-]?\d+)?")


def given_away(shown: Sequence[ShownCell], declared: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Where an output has a declared text, or anything of the section has the number that is compared."""
    boxes = prediction_boxes([one.cell for one in shown])
    truths = {name: truth for one in shown for name, truth in one.truths.items()}
    for name, box in boxes.items():
        early = read_too_early([one.cell for one in shown], box)
        for text in declared.get(name, ()):
            telling = [shown[number] for number in early if shows(shown[number].output, text)]
            yield from (f"{name}: {text!r} in the output of {one.cell.label}" for one in telling)
        if name in truths and len(digits := _digits(number_text(truths[name][1], truths[name][0]))) >= 3:
            for number in (number for number in early if number >= _section(shown, box)):
                # What was measured before the box was shown is another thing, and may have the same digits by chance.
                seen = shown[number].seen if number > box.asked else shown[number].source
                yield from (f"{name}: {found} in {shown[number].cell.label}" for found in _same(seen, digits, name))


def _section(shown: Sequence[ShownCell], box: PredictionBox) -> int:
    """The number of the heading above a box: in other sections the same number is of another thing."""
    return max((number for number in range(box.asked) if shown[number].source.startswith("## ")), default=0)


def _same(seen: str, digits: str, name: str) -> Iterator[str]:
    """Numbers of three significant digits or more that agree with the answer's, in any unit."""
    for found in _NUMBER.findall(seen):
        here = _digits(found)
        if len(here) >= 3 and _rounded(here, digits) == _rounded(digits, here) and here != OTHER_NUMBERS.get(name):
            yield found


def _rounded(digits: str, other: str) -> str:
    """Digits, as many as both numbers have."""
    places = min(len(digits), len(other))
    return str(round(int(digits) / 10 ** (len(digits) - places)))


def _digits(text: str) -> str:
    """The significant digits of the first number, without zeros at either end."""
    number = _NUMBER.search(text)
    return re.sub(r"\D", "", number[0].split("e")[0]).strip("0") if number else ""


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
def test_nothing_that_answers_a_box_is_shown_before_its_reveal(name: str) -> None:
    lab = LABS[name]

    assert [] == list(given_away(executed(lab), lab.toml.gives_away))


def shown(kind: str, source: str, output: str = "", **truths: float) -> ShownCell:
    cell = Cell(None, None, kind, source, 1, 1, "lab.py")
    return ShownCell(cell, source, output, {name: ("ms", true) for name, true in truths.items()})


BOX, REVEAL = 'predict("pan", "It takes", unit="ms")', 'with reveal_prediction("pan") as truth:\n    truth(0.01234)'


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        (shown("code", "u_curve(axes)", "Plot “least: 23”"), ["pan: 'least: 23' in the output of cell at line 1"]),
        (shown("code", "print(run_s)", "12.3 ms"), ["pan: 12.3 in cell at line 1"]),
        (shown("markdown", "It takes 12,340 ns."), ["pan: 12,340 in cell at line 1"]),
        (shown("markdown", "It takes 12 ms, or 124 of them."), []),
        (shown("markdown", "It takes 0.01233 s."), []),
        (shown("markdown", "The datasheet says 12.340 ms."), ["pan: 12.340 in cell at line 1"]),
        (shown("markdown", "## 2. Next, after 12.3 ms"), ["pan: 12.3 in cell at line 1"]),
    ],
)
def test_what_gives_an_answer_away_is_found(cell: ShownCell, found: list[str]) -> None:
    cells = [shown("code", BOX), cell, shown("code", REVEAL, "12.34 ms", pan=0.01234)]

    assert found == list(given_away(cells, {"pan": ["least: 23"]}))


def test_what_is_shown_with_the_reveal_further_down_or_in_another_section_gives_nothing_away() -> None:
    earlier, head, prose = shown("markdown", "12.3 ms"), shown("markdown", "## 1. Pans"), shown("markdown", "Next.")
    cells = [earlier, head, shown("code", BOX), shown("code", REVEAL, "least: 23", pan=0.01234), prose, earlier]

    assert [] == list(given_away(cells, {"pan": ["least: 23"]}))


@pytest.mark.parametrize("below", [shown("code", "draw()", "12.34 ms"), shown("markdown", "It took 12.34 ms.")])
def test_what_stands_below_a_hidden_answer_gives_it_away(below: ShownCell) -> None:
    cells = [shown("code", BOX), shown("code", REVEAL, pan=0.01234), below, shown("markdown", "Next.")]

    assert ["pan: 12.34 in cell at line 1"] == list(given_away(cells, {}))


def test_cells_show_what_they_print_draw_and_end_with() -> None:
    sources = [
        'predict("pan", "It takes", unit="ms")',
        "from matplotlib import pyplot\nfigure, axes = pyplot.subplots()\ntitle = axes.set_title('least: 23')",
        "print('printed')\n[1, 2]",
        'with reveal_prediction("pan") as truth:\n    truth(0.5)',
    ]
    first = LABS["lab01_gpu_basics"]
    setup = [cell for cell in first.cells if cell.role == "setup"]
    lab = type(first)(
        first.name,
        first.folder,
        first.file,
        (*setup, *(Cell(None, None, "code", source, 1, 1, "lab.py") for source in sources)),
        first.toml,
        (),
    )
    _, _, drawn, printed, last = executed(lab)

    assert "least: 23" in drawn.output
    assert ["printed", "[1, 2]"] == printed.output.split("\n")[:2]
    assert {"pan": ("ms", 0.5)} == last.truths
