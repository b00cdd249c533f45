"""Known mistakes of an exercise: the message that each gets, and the lines of the solution that change."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from edl_labs.course.lab.changed_code import Change, changed_code
from edl_labs.course.lab.source import NAME, looks_like_marker
from edl_labs.errors import SourceError

REPLACE, BY = "# %% replace", "# %% by"
TOLD_HEAD, LIKE_HEAD, WHY_HEAD, NEXT_HEAD = "# told: ", "# like: ", "# why: ", "# next: "
_HEADS = (TOLD_HEAD, LIKE_HEAD, WHY_HEAD, NEXT_HEAD)
_MISTAKE = re.compile(r'# %% mistake="([^"]*)"')
_FORMS = f'# %% mistake="name", {REPLACE} and {BY}'


@dataclass(frozen=True)
class Mistake:
    """One known mistake: the exercise it loses, the sentence a student reads, and the code that replaces names.

    `like` names the mistakes from which no public case tells it apart, and with which it shares its sentence. A mistake
    with `why` and `next` is recognized by its answers to the public cases; its `told` is the whole first sentence.
    """

    exercise: str
    name: str
    told: str
    code: str
    file: str
    line: int
    like: tuple[str, ...] = ()
    why: str = ""
    next: str = ""

    @property
    def label(self) -> str:
        """The mistake as marks and tracebacks name it.

        >>> Mistake("ring", "all_at_once", "nothing overlaps", "", "solutions/lab07/mistakes/ring.py", 9).label
        'ring.all_at_once'
        """
        return f"{self.exercise}.{self.name}"

    @property
    def where(self) -> str:
        """Its file, line and name, as messages show them."""
        return f"{self.file}:{self.line}: {self.name}"


@dataclass(frozen=True)
class _Block:
    """The lines from one marker to the next; `line` is the marker's number in the file."""

    marker: str
    line: int
    body: tuple[str, ...]

    @property
    def name(self) -> str | None:
        found = _MISTAKE.fullmatch(self.marker)
        return found[1] if found else None


def read_mistakes(text: str, *, exercise: str, solution: str, file: str) -> list[Mistake]:
    """The mistakes in a file of `mistakes/`, in its order, as changes of the exercise's `solution`.

    SourceError, with `file` and line, for text that is not one, for a mistake that says nothing or has another one's
    name, and for lines that the solution does not have or has twice.
    """
    blocks = list(_blocks(text, file))
    starts = [i for i, block in enumerate(blocks) if block.name is not None]
    if blocks and starts[:1] != [0]:
        raise _refusal(
            blocks[0], "this block does not belong to a mistake", file, next='start with a line "# %% mistake="name""'
        )
    found: dict[str, Mistake] = {}
    for start, stop in pairwise([*starts, len(blocks)]):
        one = _mistake(blocks[start:stop], exercise, solution, file)
        if one.name in found:
            why = f"the other one is at line {found[one.name].line}"
            then = "rename one of them"
            raise SourceError(f"two mistakes have the name {one.name}", file=file, line=one.line, why=why, next=then)
        found[one.name] = one
    return list(found.values())


def _blocks(text: str, file: str) -> Iterator[_Block]:
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if looks_like_marker(line)]
    for number, line in enumerate(lines[: starts[0] if starts else None], start=1):
        if line.strip():
            then = 'start with a line "# %% mistake="name""'
            raise SourceError(
                "there is text before the first mistake", file=file, line=number, why=f"it is {line!r}", next=then
            )
    for start, stop in pairwise([*starts, len(lines)]):
        block = _Block(lines[start], start + 1, tuple(lines[start + 1 : stop]))
        if block.marker not in (REPLACE, BY) and not NAME.fullmatch(block.name or ""):
            raise _refusal(
                block,
                "malformed marker",
                file,
                next=f"use {_FORMS}; a mistake's name follows the rules for exercises' names",
            )
        yield block


def _refusal(block: _Block, what: str, file: str, *, next: str) -> SourceError:
    return SourceError(what, file=file, line=block.line, why=f"the line is {block.marker!r}", next=next)


def _mistake(blocks: Sequence[_Block], exercise: str, solution: str, file: str) -> Mistake:
    head, changes = blocks[0], []
    name = str(head.name)
    heads = _heads(head, file)
    whole = _code(head, file)
    for old, new in _pairs(blocks[1:], file):
        if not _code(old, file):
            raise _refusal(old, "no lines are replaced", file, next="write lines of the solution below this marker")
        changes.append(Change(_code(old, file), _code(new, file), old.line))
    if not (whole or changes):
        raise _refusal(head, f"the mistake {name} has no code", file, next=f"write {REPLACE} and {BY}, or a function")
    code = "\n\n\n".join(filter(None, (whole, changed_code(solution, changes, exercise=exercise, file=file))))
    like = tuple(other.strip() for other in heads[LIKE_HEAD].split(",") if other)
    why, then = heads[WHY_HEAD], heads[NEXT_HEAD]
    if bool(why) != bool(then):
        missing = WHY_HEAD if then else NEXT_HEAD
        raise _refusal(
            head,
            f"the mistake {name} has no line {missing!r}",
            file,
            next="write both of the lines `# why:` and `# next:`, or neither",
        )
    return Mistake(exercise, name, heads[TOLD_HEAD], code, file, head.line, like, why, then)


def _heads(block: _Block, file: str) -> dict[str, str]:
    """The text of each head below the marker; empty where it has none."""
    first = block.body[0] if block.body else ""
    told = first.removeprefix(TOLD_HEAD).strip() if first.startswith(TOLD_HEAD) else ""
    if not told:
        raise SourceError(
            f"the mistake {block.name} has no message",
            file=file,
            line=block.line + 1,
            why=f"the line below its marker is {first!r}",
            next=f'write "{TOLD_HEAD}SENTENCE" on this line',
        )
    found = dict.fromkeys(_HEADS, "")
    for line in itertools.takewhile(lambda line: line.startswith(_HEADS), block.body):
        head = next(head for head in _HEADS if line.startswith(head))
        found[head] = line.removeprefix(head).strip()
    return found


def _pairs(blocks: Sequence[_Block], file: str) -> list[tuple[_Block, _Block]]:
    for i, block in enumerate(blocks):
        right = (REPLACE, BY)[i % 2]
        if block.marker != right:
            raise _refusal(
                block, f"the marker {right!r} is missing here", file, next=f"write one {BY} for each {REPLACE}"
            )
    if len(blocks) % 2:
        raise _refusal(blocks[-1], f"no {BY!r} follows", file, next=f"write {BY} and the lines with the mistake")
    return list(zip(blocks[::2], blocks[1::2], strict=True))


def _code(block: _Block, file: str) -> str:
    """The block's Python without the heads of a mistake; empty where it holds comments alone."""
    kept = ["" if line.startswith(_HEADS) else line for line in block.body]
    try:
        tree = ast.parse("\n".join(kept))
    except SyntaxError as error:
        line = block.line + (error.lineno or 1)
        raise SourceError(f"this is not valid Python: {error.msg}", file=file, line=line, next="fix the line") from None
    return "\n".join(kept).strip("\n") if tree.body else ""
