"""Damaged stores and images: an error that names what is broken, never wrong bytes, never the end of the process."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from edl_labs.errors import UsageError
from edl_labs.pipeline import (
    FORMATS,
    BrokenSample,
    EmptyShard,
    ImageDataset,
    Stage,
    Store,
    check_jpeg,
    decoders,
    format_writers,
    image_set,
    image_stages,
    measure_ladder,
    table_set,
    token_set,
    write,
)
from edl_labs.pipeline.synthetic_data import natural_image
from tests.sampling import few


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def images(cache: Path) -> Any:
    return image_set(10, size=(60, 80), folder=cache)


@pytest.fixture(scope="module")
def rows(cache: Path) -> Any:
    return table_set(200, columns=5, folder=cache)


@pytest.mark.parametrize("share", few([0.5, 0.999, 0.0, 0.1, 0.25, 0.9], quick=2))
@pytest.mark.parametrize("use", ["list(store.scan())", "[store.read(i) for i in range(len(store))]"])
def test_a_cut_lmdb_file_is_an_error_and_not_the_end_of_the_process(
    share: float, use: str, images: Any, tmp_path: Path
) -> None:
    path = write(images, tmp_path / "s", format="lmdb").folder / "data.mdb"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    code = f"""
from pathlib import Path
from edl_labs.errors import EdlError
from edl_labs.pipeline import Store
store = Store(Path({str(tmp_path / "s")!r}))
try:
    {use}
except EdlError as error:
    print("named", bool(error.why and error.next))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert (0, "named True\n") == (done.returncode, done.stdout), done.stderr[-800:]


def test_an_lmdb_file_that_is_open_elsewhere_is_measured_again(images: Any, tmp_path: Path) -> None:
    with write(images, tmp_path / "s", format="lmdb") as store:
        store.read(0)
        path = tmp_path / "s" / "data.mdb"
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(EmptyShard, match=r"data\.mdb is truncated"):
            Store(tmp_path / "s").read(0)
        path.write_bytes(whole)

        assert images.samples[9] == Store(tmp_path / "s").read(9)
        assert images.samples[9] == store.read(9)


def test_an_lmdb_file_that_took_the_place_of_another_is_the_one_that_is_read(images: Any, tmp_path: Path) -> None:
    with write(images, tmp_path / "s", format="lmdb") as store:
        store.read(0)
        other = image_set(10, size=(60, 80), seed=1, folder=tmp_path / "data")
        write(other, tmp_path / "t", format="lmdb")
        for name in ("data.mdb", "store.json"):
            os.replace(tmp_path / "t" / name, tmp_path / "s" / name)

        assert list(other.samples) == list(Store(tmp_path / "s").scan())


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 7, 300])
def test_whole_lmdb_files_of_any_size_are_read(which: int, count: int, cache: Path, tmp_path: Path) -> None:
    make: Any = (lambda n, **k: image_set(n, size=(16, 16), **k), token_set, table_set)[which]
    data = make(count, folder=cache)

    assert list(data.samples) == list(write(data, tmp_path / "s", format="lmdb").scan())


@pytest.mark.parametrize("missing", [0, 2, -1])
def test_samples_after_a_missing_shard_do_not_pass_for_those_that_are_missing(
    missing: int, rows: Any, tmp_path: Path
) -> None:
    store = write(rows, tmp_path / "s", format="tar", shard_bytes=400)
    store.paths[missing].unlink()
    first = {0: 0, 2: 40, -1: 180}[missing]
    found: list[bytes] = []
    with pytest.raises(BrokenSample, match=f"sample {first} of s"), Store(tmp_path / "s") as store:
        found.extend(store.scan())

    assert list(rows.samples[:first]) == found


def test_a_record_that_was_lost_from_the_middle_of_a_stream_is_named(rows: Any, tmp_path: Path) -> None:
    import msgpack

    write(rows, tmp_path / "s", format="msgpack")
    path = tmp_path / "s" / "data.msgpack"
    records = list(msgpack.Unpacker(BytesIO(path.read_bytes())))
    path.write_bytes(b"".join(msgpack.packb(record) for record in records if record["sample"] != 7))

    with pytest.raises(BrokenSample, match="sample 7 of s"), Store(tmp_path / "s") as store:
        list(store.scan())


@pytest.mark.parametrize("format", FORMATS)
def test_numbers_of_numpy_are_numbers(format: str, images: Any, tmp_path: Path) -> None:
    with write(images, tmp_path / "s", format=format) as store:
        assert images.samples[3] == store.read(np.int64(3))  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"no sample 2\.5"):
            store.read(2.5)  # type: ignore[arg-type]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("deed", [cut, flip, Path.unlink])
@pytest.mark.parametrize("format", FORMATS)
def test_writing_a_damaged_store_again_makes_it_whole(format: str, deed: Any, images: Any, tmp_path: Path) -> None:
    store = write(images, tmp_path / "s", format=format)
    for path in store.paths:
        deed(path)
        store.close()
        with write(images, tmp_path / "s", format=format) as again:
            assert list(images.samples) == list(again.scan()) == again.read_many(range(len(again)))
            assert ["s"] == os.listdir(tmp_path)


@pytest.mark.parametrize("format", FORMATS)
def test_a_whole_store_is_used_again_and_not_written(format: str, images: Any, tmp_path: Path) -> None:
    store = write(images, tmp_path / "s", format=format)
    with store:
        store.read(0)
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in store.paths}
    write(images, tmp_path / "s", format=format)

    assert before == {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in store.paths}


def test_a_store_that_is_open_while_it_is_replaced_goes_on(images: Any, tmp_path: Path) -> None:
    with write(images, tmp_path / "s", format="lmdb") as store:
        store.read(0)
        (tmp_path / "s" / "data.mdb").unlink()
        with write(images, tmp_path / "s", format="lmdb") as again:
            assert list(images.samples) == list(again.scan())
        assert list(images.samples) == list(store.scan())


def test_what_a_folder_of_other_data_holds_is_left_alone_however_damaged(
    images: Any, rows: Any, tmp_path: Path
) -> None:
    store = write(images, tmp_path / "s", format="npy")
    cut(store.paths[0])
    before = store.paths[0].read_bytes()
    with pytest.raises(UsageError, match="already contains something else"):
        write(rows, tmp_path / "s", format="npy")

    assert before == store.paths[0].read_bytes()


def test_a_store_that_another_process_wrote_in_the_meantime_is_not_moved_away(
    images: Any, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = format_writers.WRITERS["raw"]

    def late(data: Any, folder: Path, shard_bytes: int) -> None:
        monkeypatch.setitem(format_writers.WRITERS, "raw", raw)
        write(rows, tmp_path / "s")
        raw(data, folder, shard_bytes)

    monkeypatch.setitem(format_writers.WRITERS, "raw", late)
    with pytest.raises(UsageError, match="already contains something else"):
        write(images, tmp_path / "s")

    assert list(rows.samples) == list(Store(tmp_path / "s").scan())


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize("format", FORMATS)
def test_threads_that_share_a_store_get_their_own_samples(format: str, cache: Path, tmp_path: Path) -> None:
    data = table_set(1000, columns=8, folder=cache)
    store = write(data, tmp_path / "s", format=format, shard_bytes=8000)
    wrong: list[Any] = []
    start = threading.Barrier(4)

    def read(seed: int) -> None:
        order = [random.Random(f"{seed},{n}").randrange(len(data)) for n in range(600)]
        start.wait()
        try:
            wrong.extend(sample for sample in order if store.read(sample) != data.samples[sample])
        except Exception as error:
            wrong.append(error)

    def scan() -> None:
        start.wait()
        try:
            wrong.extend(n for n, payload in enumerate(store.scan()) if payload != data.samples[n])
        except Exception as error:
            wrong.append(error)

    threads = [*(threading.Thread(target=read, args=(seed,)) for seed in range(3)), threading.Thread(target=scan)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    store.close()

    assert [] == wrong
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("format", FORMATS)
def test_a_scan_goes_on_where_it_was_when_samples_are_read_in_between(format: str, rows: Any, tmp_path: Path) -> None:
    with write(rows, tmp_path / "s", format=format, shard_bytes=400) as store:
        found = [(payload, store.read(len(rows) - 1 - number)) for number, payload in enumerate(store.scan())]

    assert list(zip(rows.samples, reversed(rows.samples), strict=True)) == found


@pytest.mark.parametrize("format", ["raw", "npy"])
@pytest.mark.parametrize("broken", [0, 4, 9])
def test_the_ladder_names_the_sample_that_a_stage_refused(
    format: str, broken: int, images: Any, tmp_path: Path
) -> None:
    samples = list(images.samples)
    samples[broken] = samples[broken][:200]
    store = write(replace(images, samples=tuple(samples), checksum="other"), tmp_path / "s", format=format)

    with pytest.raises(BrokenSample, match=f"^sample {broken} cannot be used: the JPEG is truncated"):
        measure_ladder(image_stages(store, crop=40), range(10), batch_size=4, budget_s=0.005)


def test_the_ladder_names_the_sample_that_is_too_small(images: Any, cache: Path, tmp_path: Path) -> None:
    small = image_set(1, size=(30, 30), folder=cache).samples
    samples = (*images.samples[:6], *small, *images.samples[7:])
    store = write(replace(images, samples=samples, checksum="other"), tmp_path / "s")

    with pytest.raises(BrokenSample, match=r"^sample 6 cannot be used: 30 x 30 pixels"):
        measure_ladder(image_stages(store, crop=40), range(10), batch_size=4, budget_s=0.005)


def test_a_batch_that_a_stage_refuses_is_named_by_its_samples() -> None:
    def refuse(batch: Any) -> Any:
        if 5 in batch:
            raise BrokenSample("the image", "it is five")
        return batch

    with pytest.raises(BrokenSample, match=r"^one of the samples \[4, 5, 6, 7\] cannot be used: it is five"):
        measure_ladder([Stage("collate", refuse, per_batch=True)], range(8), batch_size=4, budget_s=0.005)


def test_a_missing_file_of_a_store_does_not_shift_the_samples_after_it(images: Any, tmp_path: Path) -> None:
    store = write(images, tmp_path / "s")
    store.paths[3].unlink()
    opened, read, *_ = image_stages(store, crop=40)

    assert images.samples[4] == read.fn(opened.fn(4))
    with pytest.raises(BrokenSample, match="sample 3 of s"):
        opened.fn(3)


def jpeg(size: tuple[int, int] = (40, 56), **options: Any) -> bytes:
    buffer = BytesIO()
    pixels = natural_image(np.random.default_rng(0), *size)
    Image.fromarray(pixels).save(buffer, "JPEG", **options)
    return buffer.getvalue()


WHOLE = {
    "baseline": jpeg(),
    "progressive": jpeg(progressive=True),
    "restarts": jpeg(restart_marker_blocks=2),
    "end marker in a comment": jpeg(comment=b"an end \xff\xd9 and a start \xff\xd8"),
    "preview": jpeg(exif=b"Exif\0\0" + jpeg((16, 16))),
    "filled": jpeg()[:-2] + b"\xff\xff\xff\xd9",
}
BEHIND = [b"", b"\0", bytes(5000), b"SEFT trailer of a telephone", b"\xff", jpeg((24, 24)), b"\r\n"]


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("behind", BEHIND)
def test_a_whole_jpeg_is_decoded_whatever_stands_behind_it(kind: str, behind: bytes) -> None:
    shapes = {name: decode(WHOLE[kind] + behind).shape for name, decode in decoders().items()}

    assert dict.fromkeys(decoders(), (40, 56, 3)) == shapes


@pytest.mark.parametrize("kind", WHOLE)
def test_a_jpeg_that_was_cut_anywhere_is_refused_whatever_was_filled_in(kind: str) -> None:
    content = WHOLE[kind]
    passed = []
    for stop in range(len(content)):
        for fill in (b"", bytes(len(content) - stop)):
            try:
                check_jpeg(content[:stop] + fill, sample="sample 7")
            except BrokenSample as error:
                assert "sample 7" == error.sample
            else:
                passed.append((stop, len(fill)))

    assert [] == passed


def test_a_jpeg_that_was_cut_is_not_made_whole_by_the_next_one() -> None:
    with pytest.raises(BrokenSample, match=r"sample 7 .* another one begins"):
        check_jpeg(WHOLE["baseline"][:900] + WHOLE["baseline"], sample="sample 7")


def test_markers_without_an_image_are_refused() -> None:
    with pytest.raises(BrokenSample, match="without an image"):
        check_jpeg(b"\xff\xd8\xff\xd9")


def test_a_length_of_nothing_does_not_go_round_for_ever() -> None:
    with pytest.raises(BrokenSample, match="no end marker"):
        check_jpeg(b"\xff\xd8" + b"\xff\xfe\0\0" * 1000)


@pytest.mark.parametrize("name", sorted(decoders()))
def test_a_hole_inside_an_image_is_named_with_every_decoder(name: str, images: Any, tmp_path: Path) -> None:
    store = write(images, tmp_path / "s")
    content = store.paths[3].read_bytes()
    middle = len(content) // 2
    store.paths[3].write_bytes(content[:middle] + bytes(200) + content[middle + 200 :])
    dataset = ImageDataset(store, decoder=name, crop=40)

    assert (3, 40, 40) == dataset[2].shape
    with pytest.raises(BrokenSample, match=r"sample 3 of s .* checksum"):
        dataset[3]
