"""Reads archives from other people in memory, within limits.

A learning system's archive with an entry outside its folder is refused whole. In what one student packed such an entry
is left out with a reason, and the rest is read.
"""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from edl_labs.course.own_files import LEFT_BEHIND
from edl_labs.errors import UsageError

MAX_ENTRIES = 50_000  # far above a large class: 1,000 students with 50 files each
MAX_FILE_BYTES = 128 << 20  # a notebook full of pictures has tens of MB
MAX_TOTAL_BYTES = 8 << 30  # such a notebook from each of a few hundred students; files are read one at a time
MAX_NESTED_BYTES = 512 << 20  # what one student packed is in memory all at once
_MAX_RATIO = 200  # notebooks pack about tenfold; a bomb comes near 1,032, the most that DEFLATE can do
_SLACK_BYTES = 16 << 20  # a few files of zeros, which pack better than that, hurt nobody
_OVERSIZED = f"it has more than {MAX_FILE_BYTES >> 20} MiB"
_NOISE = ("__MACOSX", "Thumbs.db", *LEFT_BEHIND)


class BadArchive(UsageError):
    """An archive that is broken, too large, or tries to leave its folder. Nothing of it was used."""


@dataclass(frozen=True)
class Entry:
    """One file of an archive or a folder. `order` is when it was packed as far as the archive says, for ties only.

    `refused`: why it was not read; `data` is empty then.
    """

    path: str
    data: bytes
    order: float = 0.0
    refused: str = ""

    @property
    def name(self) -> str:
        """The file's own name."""
        return PurePosixPath(self.path).name

    @property
    def is_notebook(self) -> bool:
        """Whether its name ends as a notebook's does."""
        return self.name.lower().endswith(".ipynb")


def read_zip(source: Path | bytes, name: str) -> Iterator[Entry]:
    """The files of a learning system's zip archive, one after the other; one that is too large as refused.

    BadArchive before the first when any other entry is not harmless.
    """
    return _read_zip(source, name, MAX_TOTAL_BYTES, leave_out=False)


def _read_zip(source: Path | bytes, name: str, most_bytes: int, *, leave_out: bool) -> Iterator[Entry]:
    """The files; with `leave_out` each that is not harmless as refused, instead of BadArchive for all."""
    try:
        archive = zipfile.ZipFile(source if isinstance(source, Path) else io.BytesIO(source))
    except Exception as error:
        raise BadArchive(f"{name} is not a zip archive", why=_said(error), next="download it again") from None
    with archive:
        infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
        for info, entry in zip(infos, _checked(infos, name, most_bytes, leave_out=leave_out), strict=True):
            if not _noise(entry.path):
                yield entry if entry.refused else _content(archive, info, entry, name, leave_out=leave_out)


def read_folder(folder: Path) -> Iterator[Entry]:
    """The files below a folder. Links are not followed, and whatever is not a plain file is left out."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        linked = any((folder / Path(*inside.parts[: n + 1])).is_symlink() for n in range(len(inside.parts)))
        if linked or not path.is_file() or _noise(inside.as_posix()):
            continue
        if path.stat().st_size > MAX_FILE_BYTES:
            yield Entry(inside.as_posix(), b"", refused=_OVERSIZED)
        else:
            yield Entry(inside.as_posix(), path.read_bytes())


def files_inside(entry: Entry) -> list[Entry]:
    """The files in an archive that a student handed in; empty for a kind of archive that is not read."""
    kind = entry.name.lower()
    if kind.endswith(".zip") or entry.data[:4] == b"PK\x03\x04":
        return list(_read_zip(entry.data, entry.name, MAX_NESTED_BYTES, leave_out=True))
    if kind.endswith((".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")):
        return list(_read_tar(entry.data, entry.name))
    return []


def _read_tar(data: bytes, name: str) -> Iterator[Entry]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            total = 0
            for count, info in enumerate(archive):
                total += info.size
                if count >= MAX_ENTRIES or total > MAX_NESTED_BYTES:
                    raise _too_large(name)
                if info.isdir():
                    continue
                path, refused = _inside(info.name)
                if not refused and not info.isreg():
                    refused = "it is a link or not a plain file, and links are not followed"
                if not refused and info.size > MAX_FILE_BYTES:
                    refused = _OVERSIZED
                if not _noise(path):
                    file = None if refused else archive.extractfile(info)
                    yield Entry(path, file.read() if file else b"", float(info.mtime), refused)
    except BadArchive:
        raise
    except Exception as error:
        raise BadArchive(f"{name} is not a tar archive", why=_said(error), next="ask for the notebook itself") from None


def _checked(infos: list[zipfile.ZipInfo], name: str, most_bytes: int, *, leave_out: bool) -> list[Entry]:
    """An entry without data for each; those that are not to be read say why."""
    if len(infos) > MAX_ENTRIES:
        raise BadArchive(f"{name} contains {len(infos):,} files", why=f"the limit is {MAX_ENTRIES:,}")
    found = []
    for info in infos:
        path, refused = _inside(_decoded(info))
        if stat.S_ISLNK(info.external_attr >> 16):
            refused = "it is a link, and links are not followed"
        if info.flag_bits & 0x1:
            refused = "it is protected by a password"
        if refused and not leave_out:
            raise BadArchive(
                f"{name} was refused: {path}",
                why=refused,
                next="ask the person who made the archive; nothing was collected",
            )
        if info.file_size > MAX_FILE_BYTES:
            refused = _OVERSIZED
        found.append(Entry(path, b"", _order(info), refused))
    found = _without_bombs(infos, found)
    if sum(info.file_size for info, entry in zip(infos, found, strict=True) if not entry.refused) > most_bytes:
        raise _too_large(name)
    return found


def _without_bombs(infos: list[zipfile.ZipInfo], entries: list[Entry]) -> list[Entry]:
    """The entries; those that unpack furthest beyond a bearable ratio are refused until the rest is bearable."""
    beyond = [info.file_size - _MAX_RATIO * info.compress_size for info in infos]
    kept = [place for place, entry in enumerate(entries) if not entry.refused]
    over = sum(beyond[place] for place in kept)
    found = list(entries)
    for place in sorted(kept, key=lambda place: -beyond[place]):
        if over <= _SLACK_BYTES:
            break
        over -= beyond[place]
        found[place] = replace(entries[place], refused="it is too large when unpacked; it may be a zip bomb")
    return found


def _inside(path: str) -> tuple[str, str]:
    """The path with plain slashes, and why it is refused: empty where it stays in its folder."""
    plain = path.replace("\\", "/")
    parts = [part for part in plain.split("/") if part not in ("", ".", "..")]
    if not parts:
        return "_", "it has no name"
    if plain.startswith("/") or ".." in plain.split("/") or "\0" in plain or plain[1:2] == ":":
        return parts[-1], f"with its name {path!r}, it would be written outside the archive's folder"
    return "/".join(parts), ""


def _decoded(info: zipfile.ZipInfo) -> str:
    """The name of an entry; older tools write UTF-8 or Windows letters without saying so."""
    if info.flag_bits & 0x800:
        return info.filename
    raw = info.filename.encode("cp437", "replace")
    for encoding in ("utf-8", "cp437"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return info.filename


def _said(error: Exception) -> str:
    """What the standard library said of damaged bytes: it raises whatever its parts raise, from struct to lzma."""
    return str(error) or type(error).__name__


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, entry: Entry, name: str, *, leave_out: bool) -> Entry:
    """The entry with its bytes; with `leave_out` refused where they are broken, else BadArchive."""
    try:
        with archive.open(info) as file:
            return replace(entry, data=file.read(info.file_size))
    except Exception as error:
        if leave_out:
            return replace(entry, refused=f"it is broken: {_said(error)}")
        raise BadArchive(f"{info.filename} in {name} is broken", why=_said(error), next="download it again") from None


def _order(info: zipfile.ZipInfo) -> float:
    year, month, day, hour, minute, second = info.date_time
    return ((((year * 12 + month) * 31 + day) * 24 + hour) * 60 + minute) * 60.0 + second


def _noise(path: str) -> bool:
    """Whether a file is the system's: Brightspace puts its own list, index.html, beside the students' folders."""
    return path == "index.html" or any(part in _NOISE or part.startswith("._") for part in path.split("/"))


def _too_large(name: str) -> BadArchive:
    return BadArchive(f"{name} is too large when unpacked", why="it may be a zip bomb", next="inspect it by hand")
