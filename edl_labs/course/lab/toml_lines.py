"""Where each key of a TOML text is, which tomllib does not say."""

from __future__ import annotations

import re

Path = tuple["str | int", ...]
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


def key_lines(text: str) -> dict[Path, int]:
    """The line of every table and key: `("exercise", 0, "points")` → 7. The text must be valid TOML."""
    found: dict[Path, int] = {(): 1}
    counts: dict[Path, int] = {}
    table: Path = ()
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


def _parts(dotted: str) -> Path:
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
