"""Finds written answers outside their cell, and copies them into the answer, so that a person reads them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from edl_labs.course.assignment import KnownCell
from edl_labs.course.grade.bounded_call import bounded_call

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # Japanese and Chinese, about two characters a word
_WORD = re.compile(rf"[{_UNSPACED}]{{1,2}}|[^\W_{_UNSPACED}]+")
_STRING = re.compile(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'|"([^"\n]*)"|\'([^\'\n]*)\'', re.DOTALL)
_MANY = 20  # words: fewer in a code cell, or far from the question, are a remark and no essay
_LONGEST = 20_000  # letters of a code cell that is parsed for an essay: the time grows with the square
_MOSTLY = 0.6  # of a code cell's letters: it prints an answer, and computes nothing to speak of


@dataclass(frozen=True)
class TypedCell:
    """A cell in its place: the released one that it stands for, if any, and what the student typed."""

    kind: str
    source: str
    known: KnownCell | None = None
    attachments: Mapping[str, dict[str, str]] | None = None
    lost: bool = False
    """Whether it was missing in the submission and was restored."""

    @property
    def is_empty_answer(self) -> bool:
        """Whether it is an answer's cell as it was released."""
        known = self.known
        return known is not None and known.role == "answer" and known.is_untouched(self.source)


def with_prose(cells: Sequence[TypedCell], lab: Iterable[KnownCell]) -> list[TypedCell]:
    """The cells as `find_answer` takes them: a student's own code that only says something has become prose.

    All of it is parsed in one process with limits; code that takes more is left as it is.
    """
    released = "\n".join(cell.source for cell in lab)
    own = {i: new_lines(c.source, released) for i, c in enumerate(cells) if c.kind == "code" and c.known is None}
    # The whole cell is parsed: a copied function without the lines that were released is no Python, and no prose.
    asked = {i: cells[i].source for i, t in own.items() if len(cells[i].source) <= _LONGEST and _words(t) >= _MANY}
    found = [*cells]
    for i, text in zip(asked, (bounded_call(prose_in_code, [*asked.values()]) if asked else None) or (), strict=False):
        if text:
            found[i] = replace(cells[i], kind="markdown", source=text)
    return found


def find_answer(cells: Sequence[TypedCell], at: int, lab: Iterable[KnownCell]) -> TypedCell | None:
    """What a student typed instead of the answer cell `at`: near its question, else above it, else anywhere.

    Far from the question it has many words, unless the answer's own cell was deleted. No line of `lab`, the released
    cells, is the student's. None where nothing was typed, or the answer is in its cell.
    """
    if not cells[at].is_empty_answer:
        return None
    released = "\n".join(cell.source for cell in lab)
    question = next((i for i in range(at - 1, -1, -1) if _is_question(cells[i], cells[at])), at)
    before = next((i for i in range(question - 1, -1, -1) if cells[i].known), 0)
    after = next((i for i in range(at + 1, len(cells)) if cells[i].known), len(cells) - 1)
    near = _all_typed([*cells[question:at], *cells[at + 1 : after + 1]], released)
    above = _all_typed(cells[before:question], released)
    least = 1 if cells[at].lost else _MANY
    far = [typed for typed in _all_typed(cells, released) if _words(typed.source) >= least]
    found = near or above or far
    pictures = {name: bundle for typed in found for name, bundle in (typed.attachments or {}).items()}
    text = "\n\n".join(typed.source for typed in found)
    return TypedCell("markdown", text, attachments=pictures or None) if found else None


def _all_typed(cells: Sequence[TypedCell], released: str) -> list[TypedCell]:
    return [typed for cell in cells for typed in _typed(cell, released)]


def _is_question(cell: TypedCell, answer: TypedCell) -> bool:
    known = cell.known
    assert answer.known is not None
    return known is not None and known.grade_id == f"{answer.known.exercise}_question"


def _typed(cell: TypedCell, released: str) -> Iterator[TypedCell]:
    """The prose that a student typed in a cell, line by line what no release had."""
    if (cell.known is not None and cell.known.role == "answer") or (cell.kind == "code" and cell.known is None):
        return
    text = new_lines(cell.source, released)
    if cell.kind == "code":
        text = _said_in_code(text)
    pictures = None if cell.known else cell.attachments
    if _words(text) or pictures:
        yield TypedCell("markdown", text, attachments=pictures)


def new_lines(typed: str, released: str) -> str:
    """The lines of a text that are in no released one."""
    known = {line.strip() for line in released.splitlines()}
    return "\n".join(line for line in typed.splitlines() if not line.strip() or line.strip() not in known).strip()


def _said_in_code(text: str) -> str:
    """The comments and strings of many words among the lines that a student added to a released code cell."""
    lines = [line.partition("#")[1:] for line in text[:_LONGEST].splitlines()]
    comments = ("\n".join(said for _, said in block) for mark, block in groupby(lines, lambda line: line[0]) if mark)
    strings = ("".join(found.groups("")) for found in _STRING.finditer(text[:_LONGEST]))
    return "\n\n".join(said.strip() for said in (*comments, *strings) if _words(said) >= _MANY)


def prose_in_code(sources: Iterable[str]) -> list[str]:
    """The text of each code cell that only says something: a string, a comment, or no Python at all; else empty."""
    return [_said(source) for source in sources]


def _said(source: str) -> str:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source if _words(source) >= _MANY else ""
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    text = "\n".join(strings) if tree.body else source.replace("#", "")
    if _words(text) < _MANY or len(text) < _MOSTLY * len(source):
        return ""
    return text


def _words(text: str) -> int:
    return len(_WORD.findall(text))
