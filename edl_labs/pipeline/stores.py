"""One data set in eight formats, with one way to read them all: by number, in an order, or from end to end."""

from __future__ import annotations

import errno
import json
import operator
import os
import shutil
import tempfile
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import EdlError, UsageError
from edl_labs.pipeline.errors import BrokenSample, disk_errors, refuse_full
from edl_labs.pipeline.synthetic_data import DataSet

FORMATS = ("raw", "tar", "parquet", "arrow", "lmdb", "hdf5", "npy", "msgpack")
_META = "store.json"
# Headers, padding and trees: no format takes more than this beside the samples themselves.
_SLACK, _SLACK_EACH = 1 << 20, 9000

# Threads that open a store wait for each other, and so does a fork: a child would never see the lock given back.
_OPENING = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_OPENING.acquire, after_in_parent=_OPENING.release, after_in_child=_OPENING.release)


class Store:
    """A data set on disk. Handles open when first used, and stay behind when a worker gets a copy; threads share them.

    `read(i)` gives the bytes of a sample, and BrokenSample, naming it, where they are not what was written; `scan()`
    gives all of them in the order of the file, as fast as the format can.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        meta = _read_meta(self.folder)
        self.format: str = meta["format"]
        self.kind: str = meta["kind"]
        self.sizes: list[int] = meta["sizes"]
        self._sums: list[int] = meta["crc32"]
        self._inside: tuple[int, Any] | None = None

    def __len__(self) -> int:
        return len(self.sizes)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inside": None}

    @property
    def paths(self) -> list[Path]:
        """The files that hold the samples."""
        return _files(self.folder)

    @property
    def nbytes(self) -> int:
        """The total size of the files."""
        return sum(path.stat().st_size for path in self.paths)

    def read(self, sample: int, *, verify: bool = False) -> bytes:
        """The bytes of a sample, of the length that was written; `verify=True` compares their CRC-32 too."""
        sample = self._number(sample)
        try:
            payload = bytes(self._reader().get(sample))
        except EdlError:
            raise
        except Exception as error:
            raise BrokenSample(self._name(sample), f"{type(error).__name__}: {error}") from error
        return self._checked(sample, payload, verify=verify)

    def read_many(self, samples: Iterable[int]) -> list[bytes]:
        """Several samples, in the requested order."""
        return [self.read(sample) for sample in samples]

    def scan(self) -> Iterator[bytes]:
        """All samples in the order of the file, read as the format reads fastest."""
        count = -1
        try:
            for count, payload in enumerate(self._reader().all()):
                yield self._checked(count, bytes(payload), verify=False)
        except EdlError:
            raise
        except Exception as error:
            raise BrokenSample(self._name(count + 1), f"{type(error).__name__}: {error}") from error
        if count + 1 < len(self):
            raise BrokenSample(self._name(count + 1), f"the files end after {count + 1} of {len(self)} samples")

    def close(self) -> None:
        """Close what is open; the store opens it again when it is used."""
        with _OPENING:
            inside, self._inside = self._inside, None
            if inside is not None and inside[0] == os.getpid():
                inside[1].close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reader(self) -> Any:
        # A fork shares file positions with its parent: two readers of one handle would get each other's bytes.
        inside, process = self._inside, os.getpid()
        if inside is None or inside[0] != process:
            with _OPENING:
                inside = self._inside
                if inside is None or inside[0] != process:
                    from edl_labs.pipeline import format_readers

                    reader = format_readers.READERS[self.format](self.folder, self.sizes, self.kind)
                    self._inside = inside = (process, reader)
        return inside[1]

    def _number(self, sample: Any) -> int:
        try:
            # Samplers also give numbers of numpy, which no format's library needs to know.
            number = operator.index(sample)
        except TypeError:
            number = -1
        if not 0 <= number < len(self):
            raise UsageError(
                f"there is no sample {sample!r}",
                why=f"the store has {len(self)} samples",
                next=f"use a number from 0 to {len(self) - 1}",
            )
        return number

    def _name(self, sample: int) -> str:
        return f"sample {sample} of {self.folder.name} ({self.format})"

    def _checked(self, sample: int, payload: bytes, *, verify: bool) -> bytes:
        if sample >= len(self) or len(payload) != self.sizes[sample]:
            wanted = self.sizes[sample] if sample < len(self) else 0
            raise BrokenSample(self._name(sample), f"it has {len(payload):,} bytes, but {wanted:,} were written")
        if verify and zlib.crc32(payload) != self._sums[sample]:
            raise BrokenSample(self._name(sample), "its bytes have changed: the checksum does not match")
        return payload


@checked_arguments()
def write(data: DataSet, folder: Path | str, *, format: str = "raw", shard_bytes: int = 4_000_000) -> Store:
    """`data` as a `Store` in a new `folder`, all of it or nothing; shards of a tar store hold up to `shard_bytes`.

    UsageError names a sample larger than a shard; DiskFull says how much room is missing. A store of the same data that
    is already there is used again, and one whose files have changed or are missing is replaced.
    """
    from edl_labs.pipeline import format_writers

    folder = Path(folder)
    if format not in FORMATS:
        raise UsageError(
            f"there is no format {format!r}", why=f"the formats are {', '.join(FORMATS)}", next="choose one of these"
        )
    if not len(data):
        raise UsageError(
            "an empty data set cannot be written",
            why="it contains no samples",
            next="create a data set with at least one sample",
        )
    for sample, payload in enumerate(data.samples):
        if format == "tar" and len(payload) > shard_bytes:
            raise UsageError(
                f"sample {sample} of {len(payload):,} bytes does not fit into a shard of {shard_bytes:,} bytes",
                why="a sample cannot be split across shards",
                next="increase shard_bytes, or make the sample smaller",
            )
    if folder.exists() and _whole(data, folder, format):
        return Store(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    refuse_full(folder.parent, data.nbytes + len(data) * _SLACK_EACH // 10 + _SLACK, where=f"{folder.name} as {format}")
    private = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".part-{folder.name}-"))
    # Temporary folders are for their owner alone; what is made inside is for whom the umask says.
    part = private / "store"
    try:
        with disk_errors(f"{folder.name} as {format}"):
            part.mkdir()
            format_writers.WRITERS[format](data, part, shard_bytes)
            (part / _META).write_text(json.dumps(_meta(data, format, part)), encoding="utf-8")
            if folder.exists() and not _whole(data, folder, format):
                # Another process may be quicker to move it away.
                with suppress(FileNotFoundError):
                    os.replace(folder, private / "damaged")
            os.replace(part, folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not folder.exists():
            raise
        # Another process wrote the folder in the meantime.
        _whole(data, folder, format)
    finally:
        shutil.rmtree(private, ignore_errors=True)
    return Store(folder)


def _whole(data: DataSet, folder: Path, format: str) -> bool:
    """Whether all files of a store of `data` are as they were written; UsageError where it holds something else."""
    meta = _read_meta(folder)
    if (meta["format"], meta["checksum"]) != (format, data.checksum):
        raise UsageError(
            f"{folder} already contains something else",
            why=f"it contains a {meta['format']} store with different data or in a different format",
            next="choose another folder, or delete this one",
        )
    try:
        # Stores of earlier versions do not say how their files were.
        files = dict(meta.get("files", {}))
        return bool(files) and all(_fingerprint(folder / name) == was for name, was in files.items())
    except (OSError, TypeError, ValueError):
        return False


def _fingerprint(path: Path) -> list[int]:
    """Size and CRC-32: read as plain bytes, since libraries may crash over a damaged file."""
    size = crc = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            size, crc = size + len(block), zlib.crc32(block, crc)
    return [size, crc]


def _meta(data: DataSet, format: str, folder: Path) -> dict[str, Any]:
    return {
        "schema": 1,
        "format": format,
        "kind": data.kind,
        "checksum": data.checksum,
        "sizes": [len(payload) for payload in data.samples],
        "crc32": [zlib.crc32(payload) for payload in data.samples],
        "files": {path.relative_to(folder).as_posix(): _fingerprint(path) for path in _files(folder)},
    }


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in (_META, "lock.mdb"))


def _read_meta(folder: Path) -> dict[str, Any]:
    try:
        meta = json.loads((folder / _META).read_text(encoding="utf-8"))
        if meta["format"] in FORMATS and len(meta["sizes"]) == len(meta["crc32"]) > 0 and meta["kind"]:
            return dict(meta)
        problem = "its index names an unknown format, or no samples"
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{type(error).__name__}: {error}"
    raise UsageError(
        f"{folder} does not contain a store",
        why=problem,
        next="create one in a new folder with write(data, folder, format=...)",
    )
