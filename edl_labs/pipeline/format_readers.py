"""Reading each format: `get` one sample by its number, `all` of them in the order of the file.

Threads share a reader: what has one position, or holds what it read last, is used under a lock.
"""

from __future__ import annotations

import os
import tarfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from edl_labs.errors import EdlError
from edl_labs.pipeline.errors import needed
from edl_labs.pipeline.format_writers import ROW_GROUP, SUFFIX


class EmptyShard(EdlError):
    """A shard that has no samples, or lacks some of its bytes."""


class Raw:
    """One file for each sample: an open, a read and a close each time."""

    def __init__(self, folder: Path, sizes: list[int], kind: str) -> None:
        self.folder, self.count, self.suffix = folder, len(sizes), SUFFIX[kind]

    def get(self, sample: int) -> bytes:
        return (self.folder / f"{sample:08d}.{self.suffix}").read_bytes()

    def all(self) -> Iterator[bytes]:
        return map(self.get, range(self.count))

    def close(self) -> None:
        pass


class Tar:
    """Shards: a directory of where each member lies is made at the start, from the headers alone."""

    def __init__(self, folder: Path, sizes: list[int], kind: str) -> None:
        self.shards = sorted(folder.glob("*.tar"), key=lambda path: (len(path.name), path.name))
        self.files: dict[Path, _Places] = {}
        self.lock = threading.Lock()
        self.places: dict[int, tuple[Path, int, int]] = {}
        for shard in self.shards:
            for member in _members(shard):
                self.places[_number(member)] = (shard, member.offset_data, member.size)

    def get(self, sample: int) -> bytes:
        if sample not in self.places:
            raise KeyError(f"no shard of {len(self.shards)} holds it")
        shard, start, size = self.places[sample]
        file = self.files.get(shard)
        if file is None:
            with self.lock:
                file = self.files.get(shard) or self.files.setdefault(shard, _Places(shard))
        return file.read(start, size)

    def all(self) -> Iterator[bytes]:
        expected = 0
        for shard in self.shards:
            with tarfile.open(shard, "r|") as archive:
                for member in archive:
                    file = archive.extractfile(member)
                    if file is not None:
                        _in_order(_number(member), expected, where=shard.name)
                        expected += 1
                        yield file.read()

    def close(self) -> None:
        for file in self.files.values():
            file.close()


class _Places:
    """A file that is read at places: by the kernel's own call for it, or under a lock on systems without one."""

    def __init__(self, path: Path) -> None:
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115
        self.lock = threading.Lock()

    def read(self, start: int, size: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self.file.fileno(), size, start)
        with self.lock:
            self.file.seek(start)
            return self.file.read(size)

    def close(self) -> None:
        self.file.close()


def _number(member: tarfile.TarInfo) -> int:
    return int(member.name.split(".")[0])


def _in_order(found: int, expected: int, *, where: str) -> None:
    """Where a part is missing, what comes after it would pass for what is missing."""
    if found != expected:
        raise ValueError(f"{where} continues with sample {found}, so the samples before it are missing")


def _members(shard: Path) -> list[tarfile.TarInfo]:
    try:
        with tarfile.open(shard, "r:") as archive:
            found = [member for member in archive if member.isfile()]
    except tarfile.TarError as error:
        raise EmptyShard(
            f"the shard {shard.name} cannot be read: {error}",
            why=f"the file has {shard.stat().st_size:,} bytes",
            next="write the store again, or remove this shard from it",
        ) from error
    if not found:
        raise EmptyShard(
            f"the shard {shard.name} is empty",
            why="a loader that reads only this shard would wait for a batch that never arrives",
            next="write the store again with fewer shards",
        )
    return found


class _Columns:
    """Rows of a table in groups; the group in use is kept, since neighbours share it."""

    def __init__(self, kind: str) -> None:
        self.kind, self.held = kind, -1
        self.rows: list[bytes] = []
        self.lock = threading.Lock()

    def group(self, number: int) -> Any:
        raise NotImplementedError

    def groups(self) -> int:
        raise NotImplementedError

    def get(self, sample: int) -> bytes:
        with self.lock:
            if self.held != sample // ROW_GROUP:
                self.rows = self.unpacked(self.group(sample // ROW_GROUP))
                self.held = sample // ROW_GROUP
            return self.rows[sample % ROW_GROUP]

    def all(self) -> Iterator[bytes]:
        for number in range(self.groups()):
            with self.lock:
                table = self.group(number)
            yield from self.unpacked(table)

    def unpacked(self, table: Any) -> list[bytes]:
        """The samples of a group as bytes."""
        if self.kind != "table":
            return list(table.column("payload").to_pylist())
        import numpy as np

        values = np.stack([np.asarray(table.column(name)) for name in table.schema.names], axis=1)
        return [row.tobytes() for row in values.astype(np.float32)]


class Parquet(_Columns):
    """A sample costs its whole row group: good for scans, bad for single rows."""

    def __init__(self, folder: Path, sizes: list[int], kind: str) -> None:
        super().__init__(kind)
        self.file = needed("pyarrow", module="pyarrow.parquet").ParquetFile(folder / "data.parquet")

    def group(self, number: int) -> Any:
        return self.file.read_row_group(number)

    def groups(self) -> int:
        return int(self.file.num_row_groups)

    def close(self) -> None:
        self.file.close()


class Arrow(_Columns):
    """A memory-mapped file of record batches: a row is a slice, without a copy of its neighbours."""

    def __init__(self, folder: Path, sizes: list[int], kind: str) -> None:
        super().__init__(kind)
        pyarrow = needed("pyarrow")
        self.map = pyarrow.memory_map(str(folder / "data.arrow"), "r")
        self.file = pyarrow.ipc.open_file(self.map)

    def group(self, number: int) -> Any:
        return self.file.get_batch(number)

    def groups(self) -> int:
        return int(self.file.num_record_batches)

    def get(self, sample: int) -> bytes:
        with self.lock:
            batch = self.group(sample // ROW_GROUP)
        return self.unpacked(batch.slice(sample % ROW_GROUP, 1))[0]

    def close(self) -> None:
        self.map.close()


class Lmdb:
    """A memory-mapped B-tree. A process may open it once, so that stores of the same file share an environment.

    A page that the tree speaks of and the file does not have would end the process: the file is measured first.
    """

    _open: ClassVar[dict[tuple[int, str], _Environment]] = {}

    def __init__(self, folder: Path, sizes: list[int], kind: str) -> None:
        self.path = str((folder / "data.mdb").resolve())
        self.key = (os.getpid(), self.path)
        for parent in [key for key in self._open if key[1] == self.path and key != self.key]:
            # An environment does not survive a fork: let it go before opening one's own.
            self._open.pop(parent).close()
        self.shared = self._open.get(self.key) or _Environment(self.path)
        self.shared.refresh()
        self._open[self.key] = self.shared
        self.shared.users += 1

    def get(self, sample: int) -> bytes:
        with self.shared.environment.begin(buffers=True) as transaction:
            found = transaction.get(sample.to_bytes(8, "big"))
            if found is None:
                raise KeyError("the sample is not in the tree")
            return bytes(found)

    def all(self) -> Iterator[bytes]:
        with self.shared.environment.begin(buffers=True) as transaction:
            for expected, (key, value) in enumerate(transaction.cursor()):
                _in_order(int.from_bytes(key, "big"), expected, where="data.mdb")
                yield bytes(value)

    def close(self) -> None:
        self.shared.users -= 1
        if not self.shared.users and self._open.get(self.key) is self.shared:
            del self._open[self.key]
            self.shared.close()


class _Environment:
    """An open LMDB file, of the size that its tree needs."""

    def __init__(self, path: str) -> None:
        self.path, self.users, self.needed = path, 0, 0
        self.environment: Any = None
        self.file: tuple[int, int] = (0, 0)

    def refresh(self) -> None:
        """Open the file, again where another one has taken its place; EmptyShard where it has been cut off."""
        status = os.stat(self.path)
        if self.environment is None or self.file != (status.st_dev, status.st_ino):
            self.close()
            module = needed("lmdb")
            # Opening reads the two pages of the head as any file is read; only what follows is mapped.
            self.environment = module.open(self.path, readonly=True, lock=False, subdir=False, readahead=False)
            self.file = (status.st_dev, status.st_ino)
            self.needed = (self.environment.info()["last_pgno"] + 1) * self.environment.stat()["psize"]
        if status.st_size < self.needed:
            if not self.users:
                self.close()
            raise EmptyShard(
                f"the shard {Path(self.path).name} is truncated",
                why=f"it has {status.st_size:,} bytes, but its index refers to {self.needed:,} bytes",
                next="write the store again",
            )

    def close(self) -> None:
        environment, self.environment = self.environment, None
        if environment is not None:
            environment.close()


class _Flat:
    """All bytes in one array, with the place of each sample."""

    content: Any
    starts: Any

    def get(self, sample: int) -> bytes:
        return bytes(self.content[self.starts[sample] : self.starts[sample + 1]].tobytes())

    def all(self) -> Iterable[bytes]:
        return map(self.get, range(len(self.starts) - 1))


class Hdf5(_Flat):
    """One dataset of bytes, read by slices."""

    def __init__(self, folder: Path, sizes: list[int], kind: str) -> None:
        self.file = needed("h5py").File(folder / "data.h5", "r")
        self.content, self.starts = self.file["content"], self.file["starts"][:]

    def close(self) -> None:
        self.file.close()


class Npy(_Flat):
    """A memory-mapped array: the kernel reads the pages that are touched."""

    def __init__(self, folder: Path, sizes: list[int], kind: str) -> None:
        import numpy as np

        self.content = np.load(folder / "content.npy", mmap_mode="r")
        self.starts = np.load(folder / "starts.npy")

    def close(self) -> None:
        self.content = None


class Msgpack:
    """A stream of maps, and where each starts."""

    def __init__(self, folder: Path, sizes: list[int], kind: str) -> None:
        import numpy as np

        self.module = needed("msgpack")
        self.starts = np.load(folder / "starts.npy")
        self.path = folder / "data.msgpack"
        self.file = _Places(self.path)

    def get(self, sample: int) -> bytes:
        start, stop = int(self.starts[sample]), int(self.starts[sample + 1])
        record = self.module.unpackb(self.file.read(start, stop - start))
        return bytes(record["payload"])

    def all(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            for expected, record in enumerate(self.module.Unpacker(file, max_buffer_size=1 << 31)):
                _in_order(record["sample"], expected, where="data.msgpack")
                yield record["payload"]

    def close(self) -> None:
        self.file.close()


READERS: dict[str, Any] = {
    "raw": Raw,
    "tar": Tar,
    "parquet": Parquet,
    "arrow": Arrow,
    "lmdb": Lmdb,
    "hdf5": Hdf5,
    "npy": Npy,
    "msgpack": Msgpack,
}
