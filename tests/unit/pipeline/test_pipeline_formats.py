"""Data and formats: the same bytes in every format, natural statistics, and broken files that are named."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl_labs.errors import EdlError, UsageError
from edl_labs.pipeline import (
    FORMATS,
    BrokenSample,
    DiskFull,
    EmptyShard,
    Store,
    cache_state,
    image_set,
    make_cold,
    make_warm,
    require_cold,
    table_set,
    token_set,
    write,
)
from tests.sampling import few


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def sets(cache: Path) -> list[Any]:
    return [
        image_set(10, size=(60, 80), folder=cache),
        token_set(100, folder=cache),
        table_set(150, columns=5, folder=str(cache)),
    ]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_every_format_gives_back_what_was_written(format: str, which: int, cache: Path, tmp_path: Path) -> None:
    data = sets(cache)[which]
    with write(data, tmp_path / format, format=format) as store:
        order = [len(data) - 1, 0, len(data) // 2]

        assert [data.samples[i] for i in order] == store.read_many(order)
        assert list(data.samples) == list(store.scan())
        assert data.samples[1] == pickle.loads(pickle.dumps(store)).read(1, verify=True)
        assert store.nbytes >= data.nbytes
    assert [] == [p for p in tmp_path.iterdir() if p.name.startswith(".part")]


@pytest.fixture
def other_writer_first(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes another process be the first to write a store: at the last moment, before the folder is moved."""
    move = os.replace

    def first(data: Any) -> None:
        def replace(part: Any, folder: Any) -> None:
            monkeypatch.setattr(os, "replace", move)
            write(data, folder)
            move(part, folder)

        monkeypatch.setattr(os, "replace", replace)

    return first


def test_a_store_that_another_process_was_first_to_write_is_used(
    cache: Path, tmp_path: Path, other_writer_first: Any
) -> None:
    data = sets(cache)[0]
    other_writer_first(data)

    assert list(data.samples) == list(write(data, tmp_path / "s").scan())
    assert ["s"] == [path.name for path in tmp_path.iterdir()]


def test_a_store_of_other_data_that_was_there_first_is_refused(
    cache: Path, tmp_path: Path, other_writer_first: Any
) -> None:
    images, tokens, _ = sets(cache)
    other_writer_first(tokens)

    with pytest.raises(UsageError, match="already contains something else"):
        write(images, tmp_path / "s")


@pytest.mark.skipif(os.name == "nt", reason="there are no modes here")
def test_others_may_read_stores_and_data_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(image_set(2, size=(20, 30), folder=tmp_path / "data"), tmp_path / "store")
    finally:
        os.umask(before)
    paths = [tmp_path / "store", *tmp_path.glob("*/*")]

    assert {(True, 0o750), (False, 0o640)} == {(p.is_dir(), stat.S_IMODE(p.stat().st_mode)) for p in paths}


def test_data_sets_are_the_same_again_and_damage_is_made_good(cache: Path) -> None:
    first = token_set(50, seed=3, folder=cache)
    for path in cache.glob("*tokens-50-*.bin"):
        path.write_bytes(path.read_bytes()[:-3])

    assert first.checksum == token_set(50, seed=3, folder=cache).checksum
    assert first.checksum != token_set(50, seed=4, folder=cache).checksum


def test_images_have_the_spectrum_of_photographs(cache: Path) -> None:
    from PIL import Image

    from edl_labs.pipeline.synthetic_data import natural_image

    image = natural_image(np.random.default_rng(0), 256, 256).mean(axis=-1)
    power = np.abs(np.fft.fftshift(np.fft.fft2(image - image.mean()))) ** 2
    radius = np.hypot(*np.ogrid[-128:128, -128:128])
    rings = [power[(radius >= r) & (radius < 1.3 * r)].mean() for r in (4, 8, 16, 32)]
    slope = np.polyfit(np.log([4, 8, 16, 32]), np.log(rings), 1)[0]

    assert -3.2 < slope < -1.4
    assert (80, 60) == Image.open(__import__("io").BytesIO(sets(cache)[0].samples[0])).size


def test_lengths_are_lognormal(cache: Path) -> None:
    logs = np.log(token_set(3000, median_length=90, sigma=0.7, folder=cache).lengths)

    assert (pytest.approx(np.log(90), abs=0.05), pytest.approx(0.7, abs=0.05)) == (np.median(logs), logs.std())


def damage(folder: Path, format: str) -> None:
    """Cut the file that holds samples in half."""
    largest = max(
        (p for p in folder.rglob("*") if p.is_file() and p.name != "store.json"), key=lambda p: p.stat().st_size
    )
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_was_cut_is_an_error_that_names_a_sample_or_a_shard(
    format: str, cache: Path, tmp_path: Path
) -> None:
    write(sets(cache)[0], tmp_path / "s", format=format)
    damage(tmp_path / "s", format)

    with pytest.raises(EdlError, match=r"sample|shard") as error, Store(tmp_path / "s") as store:
        list(store.scan())

    assert error.value.why
    assert error.value.next


def test_changed_bytes_are_found_by_their_checksum(cache: Path, tmp_path: Path) -> None:
    store = write(sets(cache)[0], tmp_path / "s", format="raw")
    victim = store.paths[3]
    content = bytearray(victim.read_bytes())
    content[100] ^= 1
    victim.write_bytes(content)

    with pytest.raises(BrokenSample, match=r"sample 3 .* checksum"):
        store.read(3, verify=True)


@pytest.mark.parametrize("content", [b"", bytes(10240)])
def test_an_empty_shard_is_named(content: bytes, cache: Path, tmp_path: Path) -> None:
    store = write(sets(cache)[0], tmp_path / "s", format="tar", shard_bytes=8000)
    assert len(store.paths) > 2
    store.paths[1].write_bytes(content)

    with pytest.raises(EmptyShard, match=r"shard-00001\.tar"):
        store.read(0)


def test_a_sample_larger_than_a_shard_is_named(cache: Path, tmp_path: Path) -> None:
    data = sets(cache)[0]
    with pytest.raises(UsageError, match="sample 0 of"):
        write(data, tmp_path / "s", format="tar", shard_bytes=100)


@pytest.mark.parametrize("format", few(sorted(FORMATS, key=lambda f: f in ("tar", "parquet", "arrow")), quick=3))
def test_a_disk_that_fills_up_leaves_nothing_behind(format: str, cache: Path, tmp_path: Path) -> None:
    # A limit on the size of files is what an unprivileged process can have of a full disk.
    code = f"""
import resource, signal, sys
from pathlib import Path
from edl_labs.pipeline import write, image_set, DiskFull
data = image_set(40, size=(120, 160), folder=Path({str(cache)!r}))
from edl_labs.pipeline import format_writers
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = 2000 if {format!r} == 'raw' else 60000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    write(data, Path({str(tmp_path)!r}) / 's', format={format!r})
except DiskFull as error:
    print('full', bool(error.why and error.next))
"""
    image_set(40, size=(120, 160), folder=cache)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert "full True" in done.stdout, done.stderr[-800:]
    assert [] == list(tmp_path.iterdir())


def test_too_little_room_is_said_before_writing(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 10, 0))

    with pytest.raises(DiskFull, match="not enough free space"):
        write(sets(cache)[1], tmp_path / "s")


def test_an_error_that_is_not_a_full_disk_keeps_its_name_and_leaves_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edl_labs.pipeline import format_writers

    def breaks(data: Any, folder: Path, shard_bytes: int) -> None:
        (folder / "half").write_bytes(b"x")
        raise OSError(errno.EACCES, "not allowed")

    monkeypatch.setitem(format_writers.WRITERS, "raw", breaks)
    with pytest.raises(OSError, match="not allowed"):
        write(sets(cache)[1], tmp_path / "s")

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "call",
    [
        lambda cache, tmp: write(sets(cache)[0], tmp / "s", format="floppy"),
        lambda cache, tmp: Store(tmp),
        lambda cache, tmp: write(sets(cache)[0], tmp / "s").read(10),
        lambda cache, tmp: image_set(0, folder=cache),
        lambda cache, tmp: token_set(3, sigma=float("nan"), folder=cache),
        lambda cache, tmp: (write(sets(cache)[0], tmp / "s"), write(sets(cache)[1], tmp / "s")),
        lambda cache, tmp: cache_state(tmp / "nothing"),
    ],
)
def test_misuse_says_what_why_and_next(call: Any, cache: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        call(cache, tmp_path)

    assert all((error.value.what, error.value.why, error.value.next))


def test_the_page_cache_is_told_and_cleared_without_root(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3_000_001))
    warm = make_warm(path)
    if not warm.known:
        pytest.skip("this system has no mincore")
    cold = make_cold(path)

    assert ("warm", 3_000_001) == (warm.word, warm.resident_bytes)
    if cold.word != "cold":
        with pytest.raises(UsageError, match="cannot be made cold"):
            require_cold(path)
    else:
        assert "cold" == require_cold(path).word
        path.read_bytes()
        assert "warm" == cache_state(tmp_path).word


def test_looking_at_the_cache_brings_nothing_in(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1_000_000))
    before = make_cold(path)

    assert before == cache_state(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("format", FORMATS)
def test_forked_readers_do_not_disturb_each_other(format: str, cache: Path, tmp_path: Path) -> None:
    data = sets(cache)[1]
    store = write(data, tmp_path / "s", format=format)
    store.read(0)
    children = []
    for offset in range(2):
        child = os.fork()
        if not child:
            right = all(store.read(i, verify=True) == data.samples[i] for i in range(offset, 100, 2) for _ in range(5))
            os._exit(0 if right else 1)
        children.append(child)

    assert [0, 0] == [os.waitpid(child, 0)[1] for child in children]
    assert data.samples[5] == store.read(5)


def test_shards_are_what_webdataset_reads(cache: Path, tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed: pip install 'edl-labs[dev]'")
    data = image_set(10, size=(60, 80), folder=cache)

    shards = write(data, tmp_path / "tar", format="tar", shard_bytes=8000).paths

    assert len(shards) > 1
    found = [sample for shard in shards for sample in webdataset.WebDataset(str(shard), shardshuffle=False)]
    assert [f"{number:08d}" for number in range(10)] == [sample["__key__"] for sample in found]
    assert list(data.samples) == [sample["jpg"] for sample in found]


def test_shards_need_no_library(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "webdataset", None)  # importing it raises
    data = token_set(20, folder=cache)

    assert list(data.samples) == list(write(data, tmp_path / "tar", format="tar").scan())
