"""TOML files read into structs: which key does not fit its struct, in which line it is, and which name was meant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

TomlPath = tuple[str | int, ...]
_PART = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_NAMED = re.compile(r"(?:field `|Invalid enum value ')(?P<name>[^`']*)(?:`|' - at `key`)")
_HEADER = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=(.*)$", re.DOTALL)
_TOKENS = (
    r'"""(?:\\.|[^\\])*?"""',
    r"'''.*?'''",
    r'(?P<open>"""|\'\'\')',  # what is left of the three quotes when no end is in sight
    r'"(?:\\.|[^"\\\n])*"',
    r"'[^'\n]*'",
    r"#[^\n]*",
)
_STRINGS = re.compile("|".join(_TOKENS), re.DOTALL)


@dataclass(frozen=True)
class Misfit:
    """A key that does not fit its struct: where it is (or would be), what it holds, and whether the struct lacks it."""

    path: TomlPath
    value: Any
    unknown: bool

    @property
    def key(self) -> str:
        """The names of the path, without places in lists.

        >>> Misfit(("exercise", 0, "points"), None, False).key
        'exercise.points'
        """
        return ".".join(part for part in self.path if isinstance(part, str))


def misfit(error: msgspec.ValidationError, data: Any) -> Misfit:
    """What msgspec's error says of the `data` that it refused to convert.

    >>> misfit(msgspec.ValidationError("Object contains unknown field `b` - at `$.a[0]`"), {"a": [{"b": 1}]})
    Misfit(path=('a', 0, 'b'), value=1, unknown=True)
    """
    text = str(error)
    at = re.search(r"`\$([^`]*)`$", text)
    path: TomlPath = tuple(name or int(place) for name, place in _PART.findall(at[1])) if at else ()
    named = _NAMED.search(text)
    path = (*path, named["name"]) if named else path
    value = data
    for part in path:
        value = value[part] if isinstance(part, int) else value.get(part)
    return Misfit(path, value, "unknown field" in text or "at `key`" in text)


def key_lines(text: str) -> dict[TomlPath, int]:
    """The line of every table and key: `("exercise", 0, "points")` → 7. The text must be valid TOML."""
    found: dict[TomlPath, int] = {(): 1}
    counts: dict[TomlPath, int] = {}
    table: TomlPath = ()
    pending, at = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        pending, at = (pending + "\n" + line, at) if pending else (line, number)
        if _open(pending):
            continue
        statement, pending = pending, ""
        header = _HEADER.match(statement)
        if header:
            table = _parts(header[2])
            if header[1]:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            found.setdefault(table, at)
        elif key := _KEY.match(statement):
            found.setdefault((*table, *_parts(key[1])), at)
    return found


def line_of(lines: dict[TomlPath, int], path: TomlPath) -> int:
    """The line of a key, or of the nearest table around it."""
    while path not in lines:
        path = path[:-1]
    return lines[path]


def _parts(dotted: str) -> TomlPath:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _open(statement: str) -> bool:
    """Whether a string or an array that starts in `statement` goes on in the next line."""
    if not _KEY.match(statement):
        return False
    tokens = list(_STRINGS.finditer(statement))
    if any(token["open"] for token in tokens):
        return True
    bare = _STRINGS.sub("", statement)
    return bare.count("[") + bare.count("{") > bare.count("]") + bare.count("}")
