"""The text of a lab: jupytext reads its cells; this module checks their markers, their lines and forbidden text."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jupytext

from edl_labs.errors import SourceError, did_you_mean

# jupytext's format of a lab's text: no header, roles as cell metadata, and a magic stays what it is, to be refused.
PERCENT = {
    "extension": ".py",
    "format_name": "percent",
    "comment_magics": False,
    "notebook_metadata_filter": "-all",
    "cell_metadata_filter": "title,solve,check,explain,-all",
}

PLAIN_ROLES = ("setup", "parameters", "given")
NAMED_ROLES = ("solve", "check", "explain")
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_ROLE = re.compile(r'(?P<role>[^\s="]+)="(?P<name>[^"]*)"')
_LIKE = re.compile(r"\s*#+\s*%\s*%")
_HALF = re.compile(r"#[\s%]*(\[markdown\]|(" + "|".join(NAMED_ROLES) + r")\s*=\s*[\"'\w])")
Refuse = Callable[[str, str], SourceError]
_FORMS = 'setup, parameters, given, solve="name", check="name" or explain="name"'


def marker(kind: str, role: str | None = None, name: str | None = None) -> str:
    """The line that starts a cell.

    >>> marker("code"), marker("markdown", "explain", "why")
    ('# %%', '# %% [markdown] explain="why"')
    """
    words = ("# %%", "[markdown]" if kind == "markdown" else "", f'{role}="{name}"' if name else role)
    return " ".join(filter(None, words))


def looks_like_marker(line: str) -> bool:
    """Whether a line is a cell marker or can only be a misspelt one."""
    return bool(_LIKE.match(line) or _HALF.match(line))


def read_marker(text: str, *, file: str, line: int) -> tuple[str, str | None, str | None]:
    """(kind, role, name) of the cell that a line starts; SourceError for anything that is not exactly a marker."""

    def refuse(what: str, next: str) -> SourceError:
        return SourceError(what, file=file, line=line, why=f"the line is {text!r}", next=next)

    if not text.startswith("# %%") or text[4:5] not in ("", " "):
        raise refuse("malformed cell marker", 'write "# %%", and a space before anything that follows')
    if text != text.rstrip():
        raise refuse("white space after a cell marker", "remove it")
    words = _words(text[4:].strip())
    kind = "code"
    if words and words[0].startswith("["):
        if words[0] != "[markdown]":
            raise refuse(f"unknown kind of cell {words[0]}", "write [markdown] for prose, or nothing for code")
        kind, words = "markdown", words[1:]
    if len(words) > 1:
        raise refuse(
            f"a cell can have only one role, but this one has {len(words)}", "split the cell, or remove a word"
        )
    role, name = _role(words[0], refuse) if words else (None, None)
    right = marker(kind, role, name)
    if right != text:
        raise refuse("malformed cell marker", f"write {right}")
    needs = "markdown" if role == "explain" else "code"
    if role and kind != needs:
        raise refuse(f"a cell with the role {role} must be a {needs} cell", f"write {marker(needs, role, name)}")
    return kind, role, name


def _words(text: str) -> list[str]:
    return re.findall(r'[^\s"]*"[^"]*"?|\S+', text)


def _role(word: str, refuse: Refuse) -> tuple[str, str | None]:
    if word in PLAIN_ROLES:
        return word, None
    found = _ROLE.fullmatch(word)
    role = found["role"] if found else re.split(r"[=\W]", word)[0]
    if found and role in NAMED_ROLES:
        if not NAME.fullmatch(found["name"]):
            raise refuse(
                f"{found['name']!r} is not an exercise's name",
                "use at most 40 lower-case letters, digits and underscores, beginning with a letter",
            )
        return role, found["name"]
    if role in NAMED_ROLES:
        raise refuse(f"{role} needs a name in double quotes", f'write {role}="name"')
    if role in PLAIN_ROLES:
        raise refuse(f"{role} takes no name", f"write # %% {role}")
    near = did_you_mean(role, (*PLAIN_ROLES, *NAMED_ROLES))
    raise refuse(f"unknown marker word {role or word!r}", near or f"use one of these roles: {_FORMS}")


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
    return [
        _cell(lines[start:stop], start + 1, file) for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]


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


def _cell(lines: list[str], line: int, file: str) -> Cell:
    kind, role, name = read_marker(lines[0], file=file, line=line)
    read = jupytext.reads("\n".join(lines), PERCENT).cells
    written = [number for number, text in enumerate(lines[1:], start=1) if text.strip()]
    first = line + (written[0] if written else 1)
    cell = Cell(role, name, kind, read[0].source.strip("\n"), line, first, file)
    if not written:
        raise cell.error("the cell is empty", next="write something into it, or remove its marker")
    if len(read) > 1:
        why = f"jupytext reads {len(read)} cells"
        raise cell.error(
            "a line of this cell looks like the start of another cell",
            why=why,
            next='do not start a comment with "In["',
        )
    if kind == "markdown":
        _check_prose(cell, lines[written[0] : written[-1] + 1])
    _check_text(cell)
    return cell


def _check_prose(cell: Cell, body: list[str]) -> None:
    for offset, text in enumerate(body):
        if text != "#" and not text.startswith("# "):
            raise cell.error(
                "a line of prose does not start with '# '",
                line=cell.first + offset,
                why=f"the line is {text!r}",
                next='write "# " before it (only "#" on an empty line), or start a code cell above it',
            )


def _check_text(cell: Cell) -> None:
    for offset, text in enumerate(cell.source.split("\n")):
        found = _FOREIGN.search(text)
        if found:
            raise cell.error(
                f"{found[0]!r} has a special meaning in nbgrader that labs do not use",
                line=cell.first + offset,
                why="labs have no hidden tests: the code in edl_labs/exercises checks the answers",
                next="remove or reword it",
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
            f"the cell is not valid Python: {getattr(error, 'msg', None) or error}",
            line=cell.first + at,
            why="magics and shell commands cannot be tested or graded" if magic else "",
            next="use a function of edl_labs or of the standard library instead" if magic else "fix the line",
        ) from None
