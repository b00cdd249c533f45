"""Archives that others made: read in memory within limits; one that would write outside its folder is refused whole."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from edl_labs.course.own_files import LEFT_BEHIND
from edl_labs.errors import UsageError

MAX_ENTRIES = 50_000  # far above a large class: 1,000 students with 50 files each
MAX_FILE_BYTES = 128 << 20  # a notebook full of pictures has tens of MB
MAX_TOTAL_BYTES = 8 << 30  # such a notebook from each of a few hundred students; files are read one at a time
MAX_NESTED_BYTES = 512 << 20  # what one student packed is in memory all at once
_MAX_RATIO = 200  # notebooks pack about tenfold; a bomb comes near 1,032, the most that DEFLATE can do
_SLACK_BYTES = 16 << 20  # a few files of zeros, which pack better than that, hurt nobody
_NOISE = ("__MACOSX", "Thumbs.db", *LEFT_BEHIND)


class BadArchive(UsageError):
    """An archive that is broken, too large, or tries to leave its folder. Nothing of it was used."""


@dataclass(frozen=True)
class Entry:
    """One file of an archive or a folder. `order` is when it was packed as far as the archive says, for ties only."""

    path: str
    data: bytes
    order: float = 0.0

    @property
    def name(self) -> str:
        """The file's own name."""
        return PurePosixPath(self.path).name

    @property
    def is_notebook(self) -> bool:
        """Whether its name ends as a notebook's does."""
        return self.name.lower().endswith(".ipynb")


def read_zip(source: Path | bytes, name: str, *, most_bytes: int = MAX_TOTAL_BYTES) -> Iterator[Entry]:
    """The files of a zip archive, one after the other. BadArchive before the first when any entry is not harmless."""
    try:
        archive = zipfile.ZipFile(source if isinstance(source, Path) else io.BytesIO(source))
    except Exception as error:
        raise BadArchive(f"{name} is not a zip archive", why=_said(error), next="download it again") from None
    with archive:
        infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
        paths = _checked(infos, name, most_bytes)
        for info, path in zip(infos, paths, strict=True):
            if not _noise(path):
                yield Entry(path, _content(archive, info, name), _order(info))


def read_folder(folder: Path) -> Iterator[Entry]:
    """The files below a folder. Links are not followed, and whatever is not a plain file is left out."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        linked = any((folder / Path(*inside.parts[: n + 1])).is_symlink() for n in range(len(inside.parts)))
        if linked or not path.is_file() or _noise(inside.as_posix()):
            continue
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadArchive(
                f"{inside} has more than {MAX_FILE_BYTES >> 20} MiB", next="move it away, then collect again"
            )
        yield Entry(inside.as_posix(), path.read_bytes())


def files_inside(entry: Entry) -> list[Entry]:
    """The files in an archive that a student handed in; empty for a kind of archive that is not read."""
    kind = entry.name.lower()
    if kind.endswith(".zip") or entry.data[:4] == b"PK\x03\x04":
        return list(read_zip(entry.data, entry.name, most_bytes=MAX_NESTED_BYTES))
    if kind.endswith((".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")):
        return list(_read_tar(entry.data, entry.name))
    return []


def _read_tar(data: bytes, name: str) -> Iterator[Entry]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            total = 0
            for count, info in enumerate(archive):
                total += info.size
                if count >= MAX_ENTRIES or info.size > MAX_FILE_BYTES or total > MAX_NESTED_BYTES:
                    raise _too_large(name)
                if info.isdir():
                    continue
                path = _inside(info.name, name)
                if not info.isreg():
                    raise BadArchive(f"{name} holds {path}, which is not a plain file", why="links are not followed")
                file = archive.extractfile(info)
                if file is not None and not _noise(path):
                    yield Entry(path, file.read(), float(info.mtime))
    except BadArchive:
        raise
    except Exception as error:
        raise BadArchive(f"{name} is not a tar archive", why=_said(error), next="ask for the notebook itself") from None


def _checked(infos: list[zipfile.ZipInfo], name: str, most_bytes: int) -> list[str]:
    if len(infos) > MAX_ENTRIES:
        raise BadArchive(f"{name} holds {len(infos):,} files", why=f"the limit is {MAX_ENTRIES:,}")
    packed, whole = sum(i.compress_size for i in infos), sum(i.file_size for i in infos)
    if whole > most_bytes or whole > packed * _MAX_RATIO + _SLACK_BYTES:
        raise _too_large(name)
    paths = []
    for info in infos:
        path = _inside(_decoded(info), name)
        if stat.S_ISLNK(info.external_attr >> 16):
            raise BadArchive(f"{name} holds a link, {path}", why="links are not followed", next="pack the file itself")
        if info.flag_bits & 0x1:
            raise BadArchive(
                f"{path} in {name} is locked with a password", next="unpack it by hand, or ask for one without"
            )
        if info.file_size > MAX_FILE_BYTES and not _noise(path):
            raise _too_large(f"{path} in {name}")
        paths.append(path)
    return paths


def _inside(path: str, archive: str) -> str:
    """The path with plain slashes; BadArchive when it leaves the folder."""
    plain = path.replace("\\", "/")
    parts = [part for part in plain.split("/") if part not in ("", ".")]
    if not parts:
        raise BadArchive(f"{archive} was refused", why="one of its entries has no name", next="download it again")
    if plain.startswith("/") or ".." in parts or "\0" in plain or plain[1:2] == ":":
        raise BadArchive(
            f"{archive} was refused",
            why=f"its entry {path!r} would be written outside the archive's folder",
            next="nothing was collected from it; ask who made it",
        )
    return "/".join(parts)


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


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> bytes:
    try:
        with archive.open(info) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except Exception as error:
        raise BadArchive(f"{info.filename} in {name} is broken", why=_said(error), next="download it again") from None
    if len(data) > MAX_FILE_BYTES:
        raise _too_large(f"{info.filename} in {name}")
    return data


def _order(info: zipfile.ZipInfo) -> float:
    year, month, day, hour, minute, second = info.date_time
    return ((((year * 12 + month) * 31 + day) * 24 + hour) * 60 + minute) * 60.0 + second


def _noise(path: str) -> bool:
    """Whether a file is the system's: Brightspace puts its own list, index.html, beside the students' folders."""
    return path == "index.html" or any(part in _NOISE or part.startswith("._") for part in path.split("/"))


def _too_large(name: str) -> BadArchive:
    return BadArchive(f"{name} is too large when unpacked", why="it may be a bomb", next="look at it by hand")
