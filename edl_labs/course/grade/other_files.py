"""The files that were submitted with the notebook, because one of them may contain an answer.

nbgrader's exchange puts them next to the notebook, and its hook moves them to `withheld/`; `collect` keeps those of a
learning system's download in `collected/`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

from edl_labs.course.grade.files import OF_EXCHANGE
from edl_labs.course.grade.submission import OtherFile, Unreadable, parse, read_bytes
from edl_labs.course.own_files import was_left_behind
from edl_labs.course.sandbox.limits import DEFAULTS, Limits

_MOST_FILES = 50  # a person looks at a few; who hands in a whole repository is told of these
_MOST_EARLIER = 5  # of several that were replaced
_SHORT = 8  # letters of a SHA-256, which tell a student's few files apart
_TEXT_BYTES = 100_000  # 30 pages; a page that a notebook was exported to has more, and is no text to show
_TEXTS, _PAGES = (".md", ".markdown", ".txt", ".rst"), (".html", ".htm")
_UNSEEN = ("script", "style", "head", "title")
_NO_HAND_IN = (*OF_EXCHANGE, "feedback")


def withheld_folder(submitted: Path) -> Path:
    """The folder to which nbgrader's hook moves what is next to a notebook; `submitted` is the submission's folder."""
    submitted = submitted.absolute()
    return submitted.parents[2] / "withheld" / submitted.parent.name / submitted.name


def collected_beside(submitted: Path) -> Path:
    """Where `collect` keeps what was handed in with a notebook."""
    return _collected(submitted, "beside")


def _collected(submitted: Path, what: str) -> Path:
    submitted = submitted.absolute()
    return submitted.parents[2] / "collected" / submitted.name / what / submitted.parent.name


def read_others(folder: Path, used: Collection[str], *, limits: Limits = DEFAULTS) -> tuple[OtherFile, ...]:
    """What was handed in with a notebook, except the files of its folder that are `used`. Links are left out.

    Notebooks that a newer one replaced are at the end.
    """
    here = [(name, path) for name, path in _files(folder) if name not in used]
    away = chain(_files(withheld_folder(folder)), _files(collected_beside(folder)))
    found = dict(sorted([*away, *here])[:_MOST_FILES])
    earlier = [path for _, path in sorted(_files(_collected(folder, "replaced"))) if path.suffix == ".ipynb"]
    return (
        *(_read(name, path, limits) for name, path in found.items()),
        *(
            replace(_read(f"an earlier submission ({path.stem[:_SHORT]})", path, limits), is_earlier=True)
            for path in earlier[-_MOST_EARLIER:]
        ),
    )


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The plain files below a folder that are not empty, with their paths in it."""
    for place, _, names in os.walk(folder):  # which follows no links
        for path in (Path(place, name) for name in names):
            inside = path.relative_to(folder)
            hidden = any(part.startswith(".") for part in inside.parts) or was_left_behind(path, folder)
            if hidden or inside.parts[0] in _NO_HAND_IN or path.is_symlink() or not path.is_file():
                continue
            if path.stat().st_size:
                yield inside.as_posix(), path


def _read(name: str, path: Path, limits: Limits) -> OtherFile:
    """The file with what it says, as far as that can be read."""
    size_bytes, kind = path.stat().st_size, path.suffix.lower()
    try:
        if kind == ".ipynb":
            found = parse(read_bytes(path, most=limits.submission_bytes), limits=limits)
            return OtherFile(name, size_bytes, found.cells, found.lab)
        if kind in (*_TEXTS, *_PAGES) and size_bytes <= _TEXT_BYTES:
            text = read_bytes(path, most=_TEXT_BYTES).decode("utf-8", "replace")
            return OtherFile(name, size_bytes, text=(text_of_page(text) if kind in _PAGES else text).strip())
    except Unreadable:
        pass
    return OtherFile(name, size_bytes)


def text_of_page(page: str) -> str:
    """What a page of HTML says, as the text field of a learning system writes it.

    >>> text_of_page("<p>It is <b>memory</b>.</p><style>p {}</style><p>Bytes &gt; FLOPs.</p>")
    'It is memory.\\nBytes > FLOPs.'
    """
    reader = _PageReader()
    reader.feed(page)
    lines = (" ".join(line.split()) for line in "".join(reader.said).splitlines())
    return "\n".join(filter(None, lines))


class _PageReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._unseen += tag in _UNSEEN
        self.said.append("\n" if tag in ("p", "br", "div", "li", "tr") else "")

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN and self._unseen > 0

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.said.append(data)
