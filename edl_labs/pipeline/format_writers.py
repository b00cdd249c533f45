"""Writing a data set in each format; `formats.write` gives them an empty folder and removes it when they fail."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from edl_labs.pipeline.errors import needed
from edl_labs.pipeline.synthetic_data import DataSet

ROW_GROUP = 64  # samples: small, so that what a single row costs shows in a small data set
SUFFIX = {"image": "jpg", "tokens": "tok", "table": "row"}


def raw(data: DataSet, folder: Path, shard_bytes: int) -> None:
    """One file for each sample."""
    for sample, payload in enumerate(data.samples):
        (folder / f"{sample:08d}.{SUFFIX[data.kind]}").write_bytes(payload)


def tar(data: DataSet, folder: Path, shard_bytes: int) -> None:
    """Shards as webdataset reads them: tar files whose members are called after sample and kind."""
    shard, filled = -1, 0
    with ExitStack() as stack:
        for sample, payload in enumerate(data.samples):
            if shard < 0 or filled + len(payload) > shard_bytes:
                stack.close()
                shard, filled = shard + 1, 0
                path = folder / f"shard-{shard:05d}.tar"
                archive = stack.enter_context(tarfile.open(path, "w", format=tarfile.USTAR_FORMAT))
            member = tarfile.TarInfo(f"{sample:08d}.{SUFFIX[data.kind]}")
            member.size = len(payload)
            archive.addfile(member, io.BytesIO(payload))
            filled += len(payload)


def parquet(data: DataSet, folder: Path, shard_bytes: int) -> None:
    """One Parquet file, without compression: what it costs would be measured instead of reading."""
    module = needed("pyarrow", module="pyarrow.parquet")
    module.write_table(_table(data), folder / "data.parquet", row_group_size=ROW_GROUP, compression="none")


def arrow(data: DataSet, folder: Path, shard_bytes: int) -> None:
    """One Arrow IPC file of record batches, to be memory-mapped."""
    pyarrow = needed("pyarrow")
    table = _table(data)
    with pyarrow.OSFile(str(folder / "data.arrow"), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=ROW_GROUP)


def lmdb(data: DataSet, folder: Path, shard_bytes: int) -> None:
    """A B-tree of big-endian numbers."""
    module = needed("lmdb")
    room = 2 * data.nbytes + 9000 * len(data) + (1 << 20)
    environment = module.open(str(folder / "data.mdb"), map_size=room, subdir=False, lock=False)
    with environment, environment.begin(write=True) as transaction:
        for sample, payload in enumerate(data.samples):
            transaction.put(sample.to_bytes(8, "big"), payload, append=True)


def hdf5(data: DataSet, folder: Path, shard_bytes: int) -> None:
    """All bytes in one dataset, and where each sample starts in another."""
    h5py = needed("h5py")
    content, starts = _flat(data)
    with h5py.File(folder / "data.h5", "w") as file:
        file.create_dataset("starts", data=starts)
        file.create_dataset("content", data=content)


def npy(data: DataSet, folder: Path, shard_bytes: int) -> None:
    """All bytes in one array to be memory-mapped, and where each sample starts in another."""
    import numpy as np

    content, starts = _flat(data)
    np.save(folder / "content.npy", content)
    np.save(folder / "starts.npy", starts)


def msgpack(data: DataSet, folder: Path, shard_bytes: int) -> None:
    """A stream of msgpack maps, and where each starts."""
    import numpy as np

    module = needed("msgpack")
    starts = [0]
    with open(folder / "data.msgpack", "wb") as file:
        for sample, payload in enumerate(data.samples):
            starts.append(starts[-1] + file.write(module.packb({"sample": sample, "payload": payload})))
    np.save(folder / "starts.npy", np.asarray(starts, dtype=np.int64))


def _table(data: DataSet) -> Any:
    pyarrow = needed("pyarrow")
    if data.kind != "table":
        return pyarrow.table({"payload": pyarrow.array(data.samples, type=pyarrow.large_binary())})
    import numpy as np

    values = np.frombuffer(b"".join(data.samples), dtype=np.float32).reshape(len(data), -1)
    return pyarrow.table({f"c{number}": values[:, number] for number in range(values.shape[1])})


def _flat(data: DataSet) -> tuple[Any, Any]:
    import numpy as np

    buffer = io.BytesIO()
    starts = [0, *(buffer.write(payload) for payload in data.samples)]
    return np.frombuffer(buffer.getvalue(), dtype=np.uint8), np.cumsum(np.asarray(starts, dtype=np.int64))


WRITERS: dict[str, Callable[[DataSet, Path, int], None]] = {
    "raw": raw,
    "tar": tar,
    "parquet": parquet,
    "arrow": arrow,
    "lmdb": lmdb,
    "hdf5": hdf5,
    "npy": npy,
    "msgpack": msgpack,
}
