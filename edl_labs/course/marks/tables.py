"""Tables as learning systems and spreadsheets write them: read in any format, and written back in the same one."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from edl_labs.errors import UsageError

MAX_BYTES = 64 << 20  # a class of 10,000 with 100 columns has about 10 MB
_DELIMITERS = ",;\t"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Table:
    """A CSV file: its header, its rows (each as wide as the header or wider), and how it was written."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    delimiter: str = ","
    encoding: str = "utf-8"
    newline: str = "\r\n"
    names: tuple[str, ...] = ()
    """The names by which columns are found, if they differ from the header, as for a file in another language."""

    def column(self, *names: str) -> int | None:
        """The place of the first column that is called one of `names`, capitals and spaces aside."""
        known = [_plain(head) for head in self.names or self.header]
        return next((known.index(_plain(name)) for name in names if _plain(name) in known), None)

    def need(self, *names: str) -> int:
        """As `column`; UsageError when there is none."""
        place = self.column(*names)
        if place is None:
            raise UsageError(
                f"{self.name} has no column {' or '.join(names)}",
                why=f"its columns are {', '.join(h or '(unnamed)' for h in self.header[:12])}",
                next="rename a column, or set the site to English and download the file again, with its header line",
            )
        return place

    def cell(self, row: Sequence[str], place: int | None) -> str:
        """A cell without surrounding space, empty when the row is too short or `place` is None."""
        return row[place].strip() if place is not None and place < len(row) else ""

    def written(self, rows: Iterable[Sequence[str]]) -> bytes:
        """The header and `rows` in this file's own delimiter, line ends and encoding."""
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self.delimiter, lineterminator=self.newline)
        writer.writerow(self.header)
        writer.writerows(rows)
        return text.getvalue().encode(self.encoding)


def read_table(path: Path) -> Table:
    """The CSV file at `path`, comma, semicolon or tab between cells, in UTF-8 (with or without mark), UTF-16 or cp1252.

    UsageError when there is no such file, or when it is not a table.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(
                f"{path.name} has more than {MAX_BYTES >> 20} MiB", next="check whether this is the right file"
            )
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read", why=error.strerror or str(error), next="use a CSV file") from None
    return parse_table(data, path.name)


def parse_table(data: bytes, name: str) -> Table:
    """The table in `data`; see `read_table`."""
    text, encoding = _decoded(data)
    if "\0" in text or not text.strip():
        raise UsageError(f"{name} is not a table", why="it is empty or not a text file", next="save it as CSV in UTF-8")
    first = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(_DELIMITERS, key=first.count)
    csv.field_size_limit(MAX_BYTES)  # 128 KiB as Python has it; a worksheet may hold all that a student typed online
    try:
        lines = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    except csv.Error as error:
        raise UsageError(f"{name} is not a table", why=str(error), next="save it as CSV again") from None
    header, *rows = lines
    newline = "\r\n" if "\r\n" in text else "\n"
    wide = (tuple(row) + ("",) * (len(header) - len(row)) for row in rows)
    return Table(name, tuple(h.strip() for h in header), tuple(wide), delimiter, encoding, newline)


def inert(text: str) -> str:
    """The text as a cell that no spreadsheet computes. Numbers stay numbers.

    >>> inert("=1+1"), inert("-3.5"), inert("Ana")
    ("'=1+1", '-3.5', 'Ana')
    """
    if text.strip() == "-":  # Moodle's sign for "no mark"; a formula needs more
        return text
    if not text.lstrip(" ").startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def same_name(text: str) -> str:
    """A form in which names are compared: no accents, no capitals, no punctuation, words in order.

    >>> same_name("Álvarez, José") == same_name("jose alvarez")
    True
    """
    letters = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(c if c.isalnum() else " " for c in letters if not unicodedata.combining(c))
    return " ".join(sorted(kept.split()))


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").casefold().split())


def _decoded(data: bytes) -> tuple[str, str]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace"), "utf-16"
    if data.startswith(b"\xef\xbb\xbf"):
        return data.decode("utf-8-sig", "replace"), "utf-8-sig"
    for encoding in ("utf-8", "cp1252"):  # the second is what Windows' Excel saves in western Europe
        with suppress(UnicodeDecodeError):
            return data.decode(encoding), encoding
    return data.decode("latin-1"), "latin-1"  # any byte is a letter there, so that it is written back as it was
