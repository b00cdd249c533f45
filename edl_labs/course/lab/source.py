"""The parser of a lab's source: percent-format text into cells, each knowing its line."""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import dataclass
from functools import cached_property

from edl_labs.course.lab.markers import Marker, looks_like_marker, read_marker
from edl_labs.errors import SourceError

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")
_REGION_LIKE = re.compile(r"\s*#+\s*(?:begin|end)[\W_]*(\w+)", re.IGNORECASE)
_FOREIGN = re.compile(r"(BEGIN|END) (HIDDEN TESTS|MARK SCHEME)|\bAUTOTEST\b")
_MAGIC = re.compile(r"\s*[%!?]")


@dataclass(frozen=True)
class Cell:
    """One cell: `role` and `name` from its marker, `source` as a notebook holds it, `line` of the marker."""

    role: str | None
    name: str | None
    kind: str
    source: str
    line: int
    first: int
    file: str

    @property
    def marker(self) -> Marker:
        """The marker that starts this cell."""
        return Marker(self.kind, self.role, self.name)

    @property
    def label(self) -> str:
        """The cell as messages and tracebacks name it."""
        return f"{self.role} {self.name}" if self.name else self.role or f"cell at line {self.line}"

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed code of a code cell."""
        return _parse(self)

    @property
    def stub(self) -> str:
        """The cell as nbgrader's ClearSolutions leaves it."""
        return cleared(self.source)

    @property
    def solution_lines(self) -> list[tuple[int, str]]:
        """The lines between the solution markers with their numbers in the file."""
        return [(self.first + i, text) for i, text, inside in _regions(self.source) if inside]

    def error(self, what: str, *, line: int | None = None, why: str = "", next: str = "") -> SourceError:
        """A SourceError at this cell, or at `line` of its file."""
        return SourceError(what, file=self.file, line=self.line if line is None else line, why=why, next=next)


def parse(text: str, *, file: str) -> list[Cell]:
    """The cells of a lab's source. SourceError, with `file` and line, for anything that is not one."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if looks_like_marker(line)]
    _refuse_text_before(lines[: starts[0]] if starts else lines, file)
    if not starts:
        raise SourceError("the lab has no cells", file=file, line=1, next='start each cell with a line "# %%"')
    cells = []
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        marker = read_marker(lines[start], file=file, line=start + 1)
        cells.append(_cell(marker, lines[start + 1 : stop], start + 1, file))
    return cells


def cleared(source: str) -> str:
    """`source` with each solution region replaced by nbgrader's stub, at the region's indent."""
    kept: list[str] = []
    for _, text, inside in _regions(source):
        if text.strip() == BEGIN:
            indent = text[: len(text) - len(text.lstrip())]
            kept += [indent + line for line in STUB]
        elif text.strip() != END and not inside:
            kept.append(text)
    return "\n".join(kept)


def _regions(source: str) -> list[tuple[int, str, bool]]:
    found, inside = [], False
    for index, text in enumerate(source.split("\n")):
        if text.strip() in (BEGIN, END):
            inside = text.strip() == BEGIN
            found.append((index, text, False))
        else:
            found.append((index, text, inside))
    return found


def _refuse_text_before(lines: list[str], file: str) -> None:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            raise SourceError(
                "there is text before the first cell",
                file=file,
                line=number,
                why=f"the line is {line!r}",
                next='start the file with "# %% [markdown]"; a lab has no header',
            )


def _cell(marker: Marker, body: list[str], line: int, file: str) -> Cell:
    first = line + 1
    while body and not body[0].strip():
        body, first = body[1:], first + 1
    while body and not body[-1].strip():
        body = body[:-1]
    cell = Cell(marker.role, marker.name, marker.kind, "\n".join(body), line, first, file)
    if not body:
        raise cell.error("the cell is empty", next="write something into it, or remove its marker")
    if marker.kind == "markdown":
        cell = Cell(marker.role, marker.name, marker.kind, _prose(cell, body), line, first, file)
    _check_text(cell)
    return cell


def _prose(cell: Cell, body: list[str]) -> str:
    for offset, text in enumerate(body):
        if text != "#" and not text.startswith("# "):
            raise cell.error(
                "a line of prose does not start with '# '",
                line=cell.first + offset,
                why=f"the line is {text!r}",
                next='write "# " before it ("#" alone on an empty line), or start a code cell above it',
            )
    return "\n".join(text[2:] for text in body)


def _check_text(cell: Cell) -> None:
    for offset, text in enumerate(cell.source.split("\n")):
        found = _FOREIGN.search(text)
        if found:
            raise cell.error(
                f"{found[0]!r} has a meaning to nbgrader that labs do not use",
                line=cell.first + offset,
                why="nothing hidden is put into a notebook: exercises are checked by edl_labs/exercises",
                next="remove it, or word it differently",
            )
        if _like_region(text) and (cell.role != "solve" or text.strip() not in (BEGIN, END)):
            raise cell.error(
                "malformed or misplaced solution marker",
                line=cell.first + offset,
                why=f"the line is {text.strip()!r}",
                next=f'in a cell with solve="name", write {BEGIN} and {END}, each on its own line',
            )
    if cell.kind == "code":
        cell.tree  # noqa: B018  parsing refuses what is not Python


def _like_region(text: str) -> bool:
    """Whether nbgrader would see a solution marker here, or a person meant one."""
    found = _REGION_LIKE.match(text)
    meant = found and difflib.SequenceMatcher(None, found[1].lower(), "solution").ratio() > 0.7
    return bool(meant) or "BEGIN SOLUTION" in text or "END SOLUTION" in text


def _parse(cell: Cell) -> ast.Module:
    try:
        return compile(cell.source, cell.file, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError) as error:
        at = (getattr(error, "lineno", None) or 1) - 1
        lines = cell.source.split("\n")
        magic = at < len(lines) and _MAGIC.match(lines[at])
        raise cell.error(
            f"the cell is not Python: {getattr(error, 'msg', None) or error}",
            line=cell.first + at,
            why="magics and shell commands cannot be tested or graded" if magic else "",
            next="use a function of edl_labs or of the standard library instead" if magic else "mend the line",
        ) from None
