"""The texts that students see about secret cases: templates without values, and sentences of the lab's modules.

A mistake's text may quote a case, or what the student's code returned or raised, which can be the case again. The
engine's sentences know their template and values (`Sentence`): the values are left out. Exercises fill in theirs, so
that of their texts nothing is kept but a sentence of the lab's source; what was filled into it becomes "…". What can be
said is a fixed list, whatever a submission does.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from edl_labs.checks import Outcome
from edl_labs.checks.lab_exercises import exercises_folder, load_lab, module_path
from edl_labs.errors import HOLE, Sentence

UNKNOWN = "the answer to a secret case is wrong"
NOT_PLAIN_DATA = "the result contains something that is not plain data"
WITHHELD = "values of secret cases are not shown; your own check shows the public cases in full"
_PACKAGE = Path(__file__).resolve().parents[2]
_WORD = re.compile(r"[A-Za-z]{2,}")
_WORDS_A_HOLE = 2  # a sentence with fewer of its own says nothing without what was filled in


@dataclass(frozen=True)
class Sentences:
    """The sentences of a lab's modules. A template's parts have a hole between each two; `words` may fill a hole."""

    whole: frozenset[str]
    templates: tuple[tuple[str, ...], ...]
    words: frozenset[str]

    def told(self, text: str) -> str:
        """The sentence that `text` is, with "…" for what was filled in; empty when it is none that we know.

        >>> Sentences(frozenset(), (("", " is wrong: try ", ""),), frozenset({"sum"})).told("7.25 is wrong: try sum")
        '… is wrong: try sum'
        """
        if isinstance(text, Sentence):
            return text.without_values(shown=self.words)
        if text in self.whole:
            return text
        found = (parts for parts in self.templates if _fillings(parts, text) is not None)
        best = max(found, key=lambda parts: sum(map(len, parts)), default=None)
        if best is None:
            return ""
        fillings = [filling if filling in self.words else HOLE for filling in _fillings(best, text) or ()]
        if len(_WORD.findall(" ".join(best))) < 1 + _WORDS_A_HOLE * fillings.count(HOLE):
            return ""
        return "".join([best[0], *(piece for pair in zip(fillings, best[1:], strict=True) for piece in pair)])


def withheld(outcome: Outcome) -> Outcome:
    """The outcome on secret cases as anybody may read it: known sentences, and nothing of a case or of what it gave."""
    bare = replace(outcome, case_index=None, case_text="", printed="")
    if outcome.state == "passed":
        return replace(bare, what="", why="", next="")
    known = sentences(outcome.lab)
    what, why, then = (known.told(text) for text in (outcome.what, outcome.why, outcome.next))
    if (what, why) != (outcome.what, outcome.why):
        why = "; ".join(filter(None, (why, WITHHELD)))
    return replace(bare, what=what or UNKNOWN, why=why, next=then)


def without_texts(records: Any, lab: str) -> Any:
    """Records as `collect` makes them, without what a submission can word itself: a probe's texts may be forged."""
    if not isinstance(records, list) or all("value" in one for one in records if isinstance(one, dict)):
        return records
    words = sentences(lab).words
    return [_without_text(record, words) if isinstance(record, dict) else record for record in records]


def _without_text(record: dict[str, Any], words: frozenset[str]) -> dict[str, Any]:
    if "value" in record:
        return record
    if "missing" in record:
        return {"missing": record["missing"] if record["missing"] in words else "requested name"}
    if "not_plain_data" in record:
        return {"not_plain_data": NOT_PLAIN_DATA}
    if isinstance(record.get("error"), dict):
        kind = record["error"].get("type")
        return {"error": {"type": kind if kind in words else "an exception", "message": ""}}
    return record


def sentences(lab: str) -> Sentences:
    """The sentences that verdicts on a lab's exercises are made of."""
    return _sentences(lab, exercises_folder())


@lru_cache(maxsize=32)  # a judge serves one lab; a test session all of them
def _sentences(lab: str, folder: Path) -> Sentences:
    path = module_path(lab, folder)
    modules = sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]
    shared = [p for p in (_PACKAGE / "exercises").glob("*.py") if not p.name.startswith("lab")]
    found: list[tuple[str, ...]] = []
    words = {exercise.name for exercise in load_lab(lab)}
    for exercise in load_lab(lab):
        named = {name: getattr(exercise.spec, name) for name in dir(type(exercise.spec)) if not name.startswith("_")}
        words |= {value for value in named.values() if isinstance(value, str)}
    for file in (*modules, *shared):
        tree, names = ast.parse(file.read_text(encoding="utf-8")), _constants_of(file, lab)
        found += [parts for node in ast.walk(tree) if (parts := _parts(node, names))]
        words |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_student(node.value)}
    words |= {name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, Exception)}
    words |= {"an exception", NOT_PLAIN_DATA}
    unique = dict.fromkeys(found)
    return Sentences(
        frozenset(parts[0] for parts in unique if len(parts) == 1),
        tuple(parts for parts in unique if len(parts) > 1),
        frozenset(words),
    )


def _is_student(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "student"


def _constants_of(file: Path, lab: str) -> dict[str, Any]:
    """The module's constants by name, of which a sentence may quote all: they are the same for every case."""
    below = f"{lab}.{file.stem}" if file.parent.name == lab and file.stem != "__init__" else file.stem
    try:
        module = importlib.import_module(f"edl_labs.exercises.{below}")
    except ImportError:
        return {}
    return {name: value for name, value in vars(module).items() if name.isupper()}


def _parts(node: ast.AST, constants: dict[str, Any]) -> tuple[str, ...]:
    """A text in the source, in parts with a hole between each two; empty for what is none."""
    if isinstance(node, ast.Constant):
        return (node.value,) if isinstance(node.value, str) else ()
    if isinstance(node, ast.JoinedStr):
        return _joined(_value_parts(value, constants) for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [_parts(side, constants) for side in (node.left, node.right)]
        return _joined(side or ("", "") for side in sides) if any(sides) else ()
    return ()


def _value_parts(value: ast.expr, constants: dict[str, Any]) -> tuple[str, ...]:
    if isinstance(value, ast.Constant):
        return (str(value.value),)
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    if isinstance(value, ast.FormattedValue) and names and names <= constants.keys():
        try:
            whole = ast.fix_missing_locations(ast.Expression(ast.JoinedStr([value])))
            return (str(eval(compile(whole, "<sentence>", "eval"), {"__builtins__": {}}, dict(constants))),)
        except Exception:
            return ("", "")
    return ("", "")


def _joined(pieces: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Pieces one after the other: the last part of one and the first of the next are one text."""
    made = [""]
    for piece in pieces:
        made = [*made[:-1], made[-1] + piece[0], *piece[1:]]
    return tuple(made)


def _fillings(parts: tuple[str, ...], text: str) -> list[str] | None:
    """What fills the holes of a template in `text`; None when the text is not of that form."""
    first, *middle, last = parts
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return None
    return _filled(text[len(first) : len(text) - len(last)], middle)


def _filled(text: str, middle: list[str]) -> list[str] | None:
    found: list[str] = []
    for part in middle:
        before, separator, text = text.partition(part) if part else ("", "", text)
        if part and not separator:
            return None
        found.append(before)
    return [*found, text]
