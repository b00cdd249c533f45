"""Every number of a lecture that lab04_data_pipelines quotes, recomputed, and found in the lab's text as recomputed."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from edl_labs.pipeline import fault_of_times, pad_collate, waste
from edl_labs.units import byte_count, seconds
from edl_labs.virtual import HDD, NVME, LoaderMachine, VirtualWorkers

from .decks import quotation, quotations

LAB = Path(__file__).resolve().parents[2] / "solutions" / "lab04_data_pipelines" / "lab04_data_pipelines.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


def test_the_disks_are_those_of_the_deck():
    assert (150e6, 3e9) == (HDD.read_byte_per_s, NVME.read_byte_per_s)
    assert [] == says("about 150 MB/s for a disk", "about 3000 MB/s for NVMe", "8 ms for a head", "80 µs for NVMe")


def test_a_thousand_samples_in_order_and_scattered():
    in_order, scattered = (HDD.read_s(1000 * 100_000, seeks=seeks) for seeks in (1, 1000))

    assert ("675 ms", "8.67 s") == (seconds(in_order), seconds(scattered))
    assert 13 == round(scattered / in_order)


def test_random_reads_on_virtual_workers_cost_what_the_disk_says():
    vw = VirtualWorkers(LoaderMachine(disks=(HDD,)))
    file = vw.file(1000 * 102_400)
    for sample in reversed(range(1000)):
        vw.read(file, offset=sample * 102_400, nbytes=102_400)

    assert HDD.read_s(1000 * 102_400, seeks=1000) == pytest.approx(vw.now_s())


@pytest.mark.parametrize(("disk", "worth", "samples"), [(HDD, "1.2 MB", 12), (NVME, "240 kB", 2)])
def test_what_a_seek_is_worth(disk, worth, samples):
    nbytes = disk.seek_s * disk.read_byte_per_s

    assert worth == byte_count(nbytes)
    assert samples == int(nbytes / 100_000)
    assert [] == says(
        "could have read 1.2 MB, which is twelve samples",
        "In 80 µs at 3 GB/s, NVMe could have read 240 kB, little more than two samples",
    )


def test_reading_two_files_in_turn_is_eight_times_as_slow():
    def read_s(*, photos: bool, labels: bool) -> float:
        vw = VirtualWorkers(LoaderMachine(disks=(HDD,), cache_bytes=1 << 33))
        files = vw.file(50 * 200_000), vw.file(50 * 100_000)
        for sample in range(50):
            if photos:
                vw.read(files[0], offset=200_000 * sample, nbytes=200_000)
            if labels:
                vw.read(files[1], offset=100_000 * sample, nbytes=100_000)
        return vw.now_s() / 50

    alone = read_s(photos=True, labels=False) + read_s(photos=False, labels=True)

    assert "2.3" == f"{1e3 * alone:.1f}"
    assert 18 == round(1e3 * read_s(photos=True, labels=True))


def test_eight_cores_want_eleven_workers_and_a_step_on_them_takes_half():
    cores, cpu_s, batch_s = 8, 40e-3, 51e-3

    assert 11 == math.ceil(cores / cpu_s * batch_s)
    assert 0.56 == round((cores / (cpu_s + 8 * 4e-3)) / (cores / cpu_s), 2)
    assert [] == says("takes 32 ms of core time from every batch")


def test_tensor_cores_want_multiples_of_eight():
    """Deck [002]: 16 bytes over the size of an element, so 8 numbers of FP16; its own figures lie on the safe side."""
    sequence, mini_batch = (
        quotation("002_shapes", r"length to be a multiple of (\d+)"),
        quotation("002_shapes", r"Mini-batch to be a multiple of (\d+)"),
    )
    batch = pad_collate([[1] * 13, [1] * 5], multiple=16 // 2)

    assert (2, 16) == batch["tokens"].shape
    assert [0, 0] == [int(figure) % 8 for figure in (sequence, mini_batch)]
    assert [] == says(
        f"to a multiple of {sequence} in fp16 (or of 32), and the mini-batch to a multiple of {mini_batch}"
    )


def test_padding_everything_wastes_most_and_sorting_least():
    lengths = [3, 5, 8, 40]

    assert 160 - 56 == waste(lengths, [[0, 1, 2, 3]]).padded_tokens
    assert 2 + 32 == waste(lengths, [[0, 1], [2, 3]]).padded_tokens


def test_the_loader_must_be_faster_than_the_step():
    """Deck [003]: the I/O rate should be higher than the training rate; 90 % of the device is the aim."""
    assert "compute-bound" == fault_of_times([1.0] * 9, [1.5] * 9, [0.0] * 9, [1.5] * 9).verdict
    assert "data-bound" == fault_of_times([1.5] * 9, [1.0] * 9, [0.5] * 9, [1.0] * 9).verdict
    assert [] == says("The loader's rate should be the higher of the two", "90 % of it is tuned")


def test_the_storys_step_makes_sixteen_hundred_samples_a_second():
    assert 1600 == 8 / 5e-3
    assert [] == says("5 ms on a device for a batch of 8")


def test_three_options_of_the_deck_are_inputs_of_the_workers_bounds():
    cores, cpu_s, elsewhere_s, step_s = 8, 40e-3, 30e-3, 4e-3

    assert (200, 800, 250) == (round(cores / cpu_s), round(cores / (cpu_s - elsewhere_s)), round(1 / step_s))
    assert ["I/O", "data augmentation"] == quotations("003_options", r"- move (.*) to separate")
    assert [] == says(
        "If 30 of the 40 ms move to another node, the cores allow 800 batches/s",
        "the step is the limit, at 250 batches/s",
    )
    assert [] == says("| use RDMA |", "| move I/O to a separate node |")


def test_a_decoder_twice_as_fast_makes_a_loader_that_decodes_half_its_time_a_third_faster():
    assert pytest.approx(4 / 3) == 1 / (1 - 0.5 + 0.5 / 2)
    assert [] == says("half of a worker's time, a decoder that is twice as fast makes the loader a third faster")


def test_from_memory_to_a_seek_latency_grows_by_twenty_thousand():
    """Colin Scott's table of latencies, 2020: main memory 100 ns, a disk's seek 2 ms."""
    assert 20_000 == round(2e-3 / 100e-9)
    assert 300e3 == 2e-3 * HDD.read_byte_per_s
    assert [] == says(
        "| main memory | 100 ns |",
        "| disk seek | 2 ms |",
        "takes 20 000 times as long",
        "at 150 MB/s, a disk could read 300 kB in 2 ms",
    )


def test_two_bytes_hold_the_ids_of_a_vocabulary_of_65_536():
    assert 65_536 == np.iinfo(np.uint16).max + 1
    assert 2e9 == 1e9 * np.uint16().itemsize
    assert [] == says("two bytes each for a vocabulary of up to 65 536, so 10⁹ tokens take 2 GB")
