"""`course.toml`, the one file in which a course says what is its own: dates, lateness, hosts, limits."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from edl_labs.errors import UsageError

FILE = "course.toml"


def read_course_file(root: Path) -> dict[str, Any]:
    """What course.toml of the course in `root` says; empty where there is no such file, UsageError for no TOML."""
    try:
        return tomllib.loads((root / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{FILE} cannot be read", why=str(error), next="correct the line") from None


def refuse_unknown(keys: Iterable[str], known: Collection[str], *, where: str) -> None:
    """UsageError for a key that is not `known`, with the one that was meant, as far as can be told."""
    for key in keys:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise wrong(f"{where} has no {key!r}", "", f"did you mean {near[0]}?" if near else _may_have(known))


def wrong(what: str, why: str, then: str) -> UsageError:
    """What is wrong with the file."""
    return UsageError(f"{FILE}: {what}", why=why, next=then)


def _may_have(known: Collection[str]) -> str:
    return f"it may have {', '.join(known)}"
