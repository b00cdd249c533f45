"""The grammar of a cell marker: `# %%`, then `[markdown]` if it is prose, then at most one role."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

from edl_labs.errors import SourceError

PLAIN_ROLES = ("setup", "parameters", "given")
NAMED_ROLES = ("solve", "check", "explain")
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_ROLE = re.compile(r'(?P<role>[^\s="]+)="(?P<name>[^"]*)"')
_LIKE = re.compile(r"\s*#+\s*%\s*%")
_HALF = re.compile(r"#[\s%]*(\[markdown\]|(" + "|".join(NAMED_ROLES) + r")\s*=\s*[\"'\w])")
Refuse = Callable[[str, str], SourceError]
_FORMS = 'setup, parameters, given, solve="name", check="name" or explain="name"'


@dataclass(frozen=True)
class Marker:
    """What a marker line says: the kind of its cell, and the role and name of that cell, if it has them."""

    kind: str
    role: str | None = None
    name: str | None = None

    @property
    def words(self) -> str:
        """The role as it is written; empty when there is none."""
        return f'{self.role}="{self.name}"' if self.name else self.role or ""

    @property
    def line(self) -> str:
        """The marker as it is written."""
        kind = ["[markdown]"] if self.kind == "markdown" else []
        return " ".join(filter(None, ["# %%", *kind, self.words]))


def looks_like_marker(line: str) -> bool:
    """Whether a line is a cell marker or can only be a misspelt one."""
    return bool(_LIKE.match(line) or _HALF.match(line))


def read_marker(text: str, *, file: str, line: int) -> Marker:
    """The marker in a line; SourceError for anything that is not exactly one."""

    def refuse(what: str, next: str) -> SourceError:
        return SourceError(what, file=file, line=line, why=f"the line is {text!r}", next=next)

    if not text.startswith("# %%") or text[4:5] not in ("", " "):
        raise refuse("malformed cell marker", 'write "# %%", then a space before anything that follows')
    if text != text.rstrip():
        raise refuse("trailing white space after a cell marker", "remove it")
    words = _words(text[4:].strip())
    kind = "code"
    if words and words[0].startswith("["):
        if words[0] != "[markdown]":
            raise refuse(f"unknown kind of cell {words[0]}", "write [markdown] for prose, nothing for code")
        kind, words = "markdown", words[1:]
    if len(words) > 1:
        raise refuse(f"a cell has one role; this one has {len(words)}", "split the cell, or remove a word")
    marker = Marker(kind, *_role(words[0], refuse)) if words else Marker(kind)
    if marker.line != text:
        raise refuse("malformed cell marker", f"write {marker.line}")
    _check_kind(marker, refuse)
    return marker


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
                "use lower-case letters, digits and underscores, at most 40, a letter first",
            )
        return role, found["name"]
    if role in NAMED_ROLES:
        raise refuse(f"{role} needs a name in double quotes", f'write {role}="name"')
    if role in PLAIN_ROLES:
        raise refuse(f"{role} takes no name", f"write # %% {role}")
    near = difflib.get_close_matches(role, (*PLAIN_ROLES, *NAMED_ROLES), n=1)
    raise refuse(f"unknown marker word {role or word!r}", f"did you mean {near[0]}?" if near else f"roles are {_FORMS}")


def _check_kind(marker: Marker, refuse: Refuse) -> None:
    needs = "markdown" if marker.role == "explain" else "code"
    if marker.role and marker.kind != needs:
        right = Marker(needs, marker.role, marker.name).line
        raise refuse(f"a cell with the role {marker.role} is a {needs} cell", f"write {right}")
