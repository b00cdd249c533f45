"""Decoders, stages, the ladder and loaders: equal images, named broken samples, limits on every wait."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from odd_data import Odd

from edl_labs import pipeline
from edl_labs.errors import EdlError, UsageError
from edl_labs.pipeline import (
    BrokenSample,
    ImageDataset,
    LoaderModel,
    Stage,
    TookTooLong,
    WorkerDied,
    agreement,
    collate,
    decoder,
    decoders,
    feed,
    fit_contention,
    image_set,
    image_stages,
    measure_contention,
    measure_handoff,
    measure_ladder,
    missing_decoders,
    rank_decoders,
    run_loader,
    write,
)
from edl_labs.pipeline.jpeg import jpeg_size
from edl_labs.virtual import VirtualWorkers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("images")


@pytest.fixture(scope="module")
def data(folder: Path) -> Any:
    return image_set(12, size=(96, 128), folder=folder)


def test_no_public_name_is_shadowed_by_a_module() -> None:
    modules = {path.stem for path in Path(pipeline.__file__).parent.glob("*.py")}

    assert set() == modules & set(pipeline.__all__)
    assert all(getattr(pipeline, name) is not None for name in pipeline.__all__)


def test_every_decoder_of_this_machine_gives_the_same_images(data: Any) -> None:
    rows = agreement(data.samples)

    assert len(rows) == len(decoders()) >= 1
    assert [] == [row for row in rows if not row.agrees]
    assert {*decoders(), *missing_decoders()} == {
        "pillow", "simplejpeg", "torchvision", "opencv", "kornia-rs", "imagecodecs"
    }  # fmt: skip


def test_a_decoder_with_swapped_colours_does_not_agree(data: Any) -> None:
    right = decoder("pillow")
    rows = agreement(data.samples, {"right": right, "bgr": lambda d, sample: right(d, sample=sample)[..., ::-1]})

    assert [True, False] == [row.agrees for row in rows]


@pytest.mark.parametrize("cut", [0.0, 0.02, 0.5, 0.99])
@pytest.mark.parametrize("name", sorted(decoders()))
def test_a_truncated_image_is_named_by_every_decoder(name: str, cut: float, data: Any) -> None:
    broken = data.samples[0][: int(cut * len(data.samples[0]))]

    with pytest.raises(BrokenSample, match="sample 7"):
        decoder(name)(broken, sample="sample 7")


def test_fill_bytes_before_markers_are_read_as_the_decoders_read_them(data: Any) -> None:
    content = data.samples[0]
    filled = content[:2] + b"\xff\xff\xff" + content[2:]

    assert (96, 128) == jpeg_size(filled)
    assert (96, 128, 3) == decoder("pillow")(filled, sample="filled").shape


@pytest.mark.parametrize("name", sorted(decoders()))
def test_garbage_between_good_markers_is_named_or_decoded_but_never_hangs(name: str, data: Any) -> None:
    content = bytearray(data.samples[0])
    content[20:-2] = os.urandom(len(content) - 22)

    with pytest.raises(BrokenSample, match="sample 7"):
        decoder(name)(bytes(content), sample="sample 7")


def test_scaled_decoding_is_smaller_and_not_below_what_was_asked(data: Any) -> None:
    for name in {"pillow", "simplejpeg"} & set(decoders()):
        for least in (20, 40, 48):
            height, width, _ = decoder(name).scaled(data.samples[0], (least, least)).shape
            assert least <= height < 96
            assert 4 / 3 == pytest.approx(width / height, abs=0.05)
        assert (96, 128, 3) == decoder(name).scaled(data.samples[0], (95, 95)).shape
    with pytest.raises(UsageError, match="no scaled decoding"):
        decoder("opencv").scaled(data.samples[0], (40, 40))


def test_grey_images_come_with_three_channels() -> None:
    from io import BytesIO

    from PIL import Image

    buffer = BytesIO()
    Image.new("L", (24, 16), 77).save(buffer, "JPEG")

    assert {(16, 24, 3)} == {decode(buffer.getvalue()).shape for decode in decoders().values()}


def test_the_ladder_has_every_rung_and_adds_up(data: Any, tmp_path: Path) -> None:
    store = write(data, tmp_path / "raw")
    ladder = measure_ladder(
        image_stages(store, crop=64, step=lambda b: b.sum()), range(12), batch_size=4, budget_s=0.03
    )
    tar = measure_ladder(image_stages(write(data, tmp_path / "npy", format="npy"), crop=64), [0, 1], budget_s=0.02)

    assert ["open", "read", "decode", "transform", "collate", "step"] == [rung.name for rung in ladder.rungs]
    assert {"pin", "copy"} == set(ladder.left_out)
    assert "open" in tar.left_out
    assert "decode" == ladder.slowest.name or ladder.slowest.alone_s > 0
    assert all(rung.low_s <= rung.alone_s <= rung.high_s for rung in ladder.rungs)
    assert ladder.to_json()["schema"] == 1


def test_a_ladder_holds_a_few_dozen_open_files_however_many_samples_there_are() -> None:
    class File:
        there = most = 0

        def __init__(self) -> None:
            File.there += 1
            File.most = max(File.most, File.there)

        def __del__(self) -> None:
            File.there -= 1

    stages = [Stage("open", lambda _: File()), Stage("read", lambda _: b""), Stage("collate", len, per_batch=True)]
    ladder = measure_ladder(stages, range(400), batch_size=64, budget_s=0.005)

    assert 3 == len(ladder.rungs)
    assert 0 < File.most < 60


def test_an_epoch_from_workers_is_the_same_as_without(data: Any, tmp_path: Path) -> None:
    dataset = ImageDataset(write(data, tmp_path / "s"), crop=64, seed=5)
    ways = ({}, {"workers": 2}, {"workers": 2, "ahead": True, "nice": 5}, {"ahead": True})
    alone, *others = ([b.numpy() for b in feed(dataset, batch_size=5, collate=collate, **way)] for way in ways)

    assert [5, 5, 2] == [len(batch) for batch in alone]
    for other in others:
        assert all(np.array_equal(a, b) for a, b in zip(alone, other, strict=True))


def test_a_broken_file_reaches_the_consumer_with_its_name(data: Any, tmp_path: Path) -> None:
    store = write(data, tmp_path / "s")
    store.paths[6].write_bytes(store.paths[6].read_bytes()[:-400])

    for workers in (0, 1):
        with pytest.raises(BrokenSample, match="sample 6 of s"):
            list(feed(ImageDataset(store, crop=64), batch_size=4, workers=workers, collate=collate, limit_s=20))


@pytest.mark.parametrize("ahead", [False, True])
def test_a_worker_that_dies_is_an_error_that_names_the_sample(ahead: bool) -> None:
    dying = Odd(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(WorkerDied, match="sample 13") as error:
        list(feed(dying, batch_size=4, workers=1, limit_s=20, ahead=ahead))

    assert (13,) == error.value.samples
    assert error.value.next


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_sample_that_never_comes_ends_at_the_limit(workers: int, ahead: bool) -> None:
    begin = time.monotonic()
    with pytest.raises(TookTooLong, match="sample 13" if workers else "batch 3"):
        list(feed(Odd(lambda: time.sleep(100)), batch_size=4, workers=workers, limit_s=0.5, ahead=ahead))

    assert time.monotonic() - begin < 60


def test_a_samples_own_error_comes_through() -> None:
    def fail() -> None:
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        list(feed(Odd(fail), batch_size=4, workers=1, limit_s=20))


def test_the_next_batch_is_taken_while_the_caller_works_and_no_other() -> None:
    seen: list[int] = []

    class Seen(Odd):
        def __getitem__(self, sample: int) -> int:
            seen.append(sample)
            return sample

    batches = feed(Seen(lambda: None), batch_size=1, collate=list, ahead=True)
    first = next(batches)
    until = time.monotonic() + 10
    while len(seen) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.1)

    assert ([0], [0, 1]) == (first, seen)


def test_a_loader_that_is_left_early_leaves_no_thread_and_no_worker() -> None:
    threads, children = threading.active_count(), len(multiprocessing.active_children())
    batches = feed(Odd(lambda: None), batch_size=1, workers=2, collate=list, ahead=True, limit_s=20)
    next(batches)
    batches.close()

    assert (threads, children) == (threading.active_count(), len(multiprocessing.active_children()))


def test_workers_stand_back_for_the_training_process() -> None:
    class Niceness(Odd):
        def __getitem__(self, sample: int) -> int:
            return os.nice(0)

    mine = os.nice(0)
    found = {value for batch in feed(Niceness(None), batch_size=4, workers=1, collate=list, nice=3) for value in batch}

    assert {min(19, mine + 3)} == found
    assert mine == os.nice(0)


def test_batches_of_another_sampler_are_followed() -> None:
    batches = [[3, 1], [2], [0, 5, 4]]
    found = feed(Odd(lambda: None), batches=batches, workers=1, collate=list, limit_s=20)

    assert batches == list(found)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"batch_size": 1, "workers": -1}, {"batch_size": 2, "batches": [[0]]}, {"batch_size": 1, "nice": -1}],
)
def test_misuse_of_feed_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        feed(Odd(lambda: None), **arguments)


def test_a_loader_of_sleeping_samples_gives_what_its_workers_allow() -> None:
    class Sleeps(Odd):
        def __getitem__(self, sample: int) -> int:
            time.sleep(5e-3)
            return sample

    one, three = (run_loader(Sleeps(None), batch_size=4, workers=w, seconds=0.5).sample_per_s for w in (1, 3))

    # Sleeping takes no core: three workers give three times as much, less what handing over costs.
    assert 1.8 < three / one < 3.6


def test_handing_over_costs_processor_time_on_both_sides() -> None:
    import torch

    worker_s, main_s = measure_handoff(torch.zeros(8, 3, 64, 64), batches=40)

    assert 0 <= worker_s < 0.05
    assert 0 <= main_s < 0.05


def test_contention_is_fitted_from_processes() -> None:
    found = measure_contention(lambda: sum(range(2000)), processes=(2,), seconds=0.15, rounds=2)

    assert {1, 2} == set(found.rates)
    assert 0 <= found.sigma < 3
    assert 0.5 == pytest.approx(fit_contention({1: 10.0, 2: 20 / 1.5, 3: 15.0}, cores=3).sigma)


def fails_later() -> None:
    global calls
    calls += 1
    if calls > 1:
        raise ValueError("no such file")


def fails_at_once() -> None:
    raise ValueError("no such file")


calls = 0


@pytest.mark.parametrize("work", [fails_at_once, fails_later])
def test_work_that_fails_in_a_process_says_so_at_once(work: Any) -> None:
    begin = time.monotonic()
    with pytest.raises(UsageError, match="the work failed") as error:
        measure_contention(work, processes=(2,), seconds=0.05, rounds=1)

    assert "ValueError: no such file" == error.value.why
    assert time.monotonic() - begin < 20


def test_a_process_that_crashes_is_not_said_to_be_slow() -> None:
    def crashes() -> None:
        global calls
        calls += 1
        if calls > 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(UsageError, match="the work failed") as error:
        measure_contention(crashes, processes=(), seconds=0.05, rounds=1)

    assert "the process ended with exit code -9" == error.value.why


def test_costs_of_nothing_hold_nothing_back() -> None:
    model = LoaderModel(1, 0.0, main_s=1e-3)

    assert 1000 == pytest.approx(model.sample_per_s(2))
    assert 1e9 < LoaderModel(1, 0.0).sample_per_s(0)


@pytest.mark.parametrize(("samples", "batch_size"), [([], 2), ([1, 2], 0)])
def test_a_loader_that_has_no_batches_to_run_is_refused(samples: list[int], batch_size: int) -> None:
    with pytest.raises(UsageError, match=f"on {len(samples)} samples with batch_size={batch_size}"):
        run_loader(samples, batch_size=batch_size, workers=0)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 6])
@pytest.mark.parametrize(("step_s", "on_cpu"), [(0.0, False), (4e-3, False), (4e-3, True)])
def test_the_prediction_agrees_with_a_simulated_loader(workers: int, step_s: float, on_cpu: bool) -> None:
    contention = fit_contention({1: 1.0, 2: 2 / 1.1}, cores=4)
    model = LoaderModel(8, 8e-3, 1e-3, 5e-4, step_s, step_on_cpu=on_cpu, contention=contention)
    vw = VirtualWorkers(cores=4, contention=0.1, collect_s=5e-4)
    count = 400
    for _ in vw.loader([[("cpu", "work", 9e-3)]] * count, workers=workers, prefetch=4):
        vw.step(step_s, threads=int(on_cpu))

    assert 8 * count / vw.now_s() == pytest.approx(model.sample_per_s(workers), rel=0.1)


def test_the_model_says_what_holds_it_back_and_where_workers_stop_helping() -> None:
    model = LoaderModel(8, 10e-3, step_s=3e-3, contention=fit_contention({1: 1.0}, cores=16))

    assert ("workers", "main") == (model.limit(2), model.limit(8))
    assert 8 / 13e-3 == pytest.approx(model.sample_per_s(0))


@pytest.mark.slow
def test_decoders_are_ranked_alone_and_in_the_loader(data: Any) -> None:
    ranks = rank_decoders(data.samples, workers=1, seconds=0.1, rounds=2)

    assert list(range(1, len(ranks.rows) + 1)) == [row.alone_rank for row in ranks.rows]
    assert sorted(row.loader_rank for row in ranks.rows) == list(range(1, len(ranks.rows) + 1))
    assert all(row.loader_per_s > 0 for row in ranks.rows)


def test_errors_of_workers_survive_the_way_to_the_main_process() -> None:
    import pickle

    error = BrokenSample("sample 3", "it is empty")

    assert str(error) == str(pickle.loads(pickle.dumps(error)))
    assert isinstance(error, EdlError)


def test_an_error_that_only_sounds_like_a_limit_stays_what_it_is() -> None:
    def fail() -> None:
        raise RuntimeError("the server timed out")

    for workers in (0, 1):
        with pytest.raises(RuntimeError, match="the server timed out"):
            list(feed(Odd(fail), batch_size=4, workers=workers, limit_s=20))
