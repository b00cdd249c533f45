"""The hardware table gives derived peaks that agree with datasheets, and never a neighbour's numbers."""

from __future__ import annotations

import dataclasses
import json

import pytest

from edl_labs.errors import EdlError
from edl_labs.hardware import Accelerator, accelerator, dtype_name, flop_rate, lookup, pcie_byte_per_s, table
from edl_labs.hardware._accelerator import parse
from edl_labs.roofline import Machine

_ROWS = [
    ("A100-40GB-PCIe", "tensor", {"fp64": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624}),
    ("A10", "cuda", {"fp64": 0.49, "fp32": 31.2}),
    ("A10", "tensor", {"tf32": 62.5, "fp16": 125, "bf16": 125, "int8": 250}),
    ("A6000", "cuda", {"fp32": 38.7}),
    ("A6000", "tensor", {"tf32": 77.4, "fp16": 154.8, "bf16": 154.8, "int8": 309.7}),
    ("RTX-3090", "cuda", {"fp64": 0.556, "fp32": 35.6}),
    ("RTX-3090", "tensor", {"tf32": 35.6, "fp16": 71, "bf16": 71, "int8": 284}),
    ("L4", "cuda", {"fp64": 0.47, "fp32": 30.3}),
    ("L4", "tensor", {"tf32": 60, "fp16": 121, "bf16": 121, "fp8": 242, "int8": 242}),
    ("L40S", "cuda", {"fp64": 1.43, "fp32": 91.6}),
    ("L40S", "tensor", {"tf32": 183, "fp16": 362, "bf16": 362, "fp8": 733, "int8": 733}),
    ("RTX-4090", "cuda", {"fp64": 1.29, "fp32": 82.6}),
    ("RTX-4090", "tensor", {"tf32": 82.6, "fp16": 165.2, "bf16": 165.2, "fp8": 330.3, "int8": 660.6}),
    ("RTX-5090", "cuda", {"fp64": 1.64, "fp32": 104.8}),
    ("RTX-5090", "tensor", {"tf32": 104.8, "fp16": 209.5, "bf16": 209.5, "fp8": 419, "int8": 838}),
    ("H100-NVL", "cuda", {"fp64": 30, "fp32": 60}),
    ("H100-NVL", "tensor", {"fp64": 60, "tf32": 417.5, "fp16": 835, "bf16": 835, "fp8": 1671, "int8": 1671}),
    ("B200", "cuda", {"fp64": 37, "fp32": 75}),
    ("B200", "tensor", {"fp64": 37, "tf32": 1125, "fp16": 2250, "bf16": 2250, "fp8": 4500, "int8": 4500}),
    ("GB200", "cuda", {"fp64": 40, "fp32": 80}),
    ("GB200", "tensor", {"fp64": 40, "tf32": 1250, "fp16": 2500, "bf16": 2500, "fp8": 5000, "int8": 5000}),
    ("MI250X-GCD", "cuda", {"fp64": 47.9 / 2, "fp32": 47.9 / 2}),
    ("MI250X-GCD", "tensor", {"fp64": 95.7 / 2, "fp32": 95.7 / 2, "fp16": 191.5, "bf16": 191.5, "int8": 191.5}),
    ("MI300X", "cuda", {"fp64": 81.7, "fp32": 163.4}),
    ("MI300X", "tensor", {"fp64": 163.4, "fp32": 163.4, "tf32": 653.7, "fp16": 1307.4, "bf16": 1307.4}),
    ("MI300X", "tensor", {"fp8": 2614.9, "int8": 2614.9}),
    ("P100-SXM2", "cuda", {"fp64": 5.3, "fp32": 10.6, "fp16": 21.2}),
    ("P100-PCIe-16GB", "cuda", {"fp64": 4.7, "fp32": 9.3, "fp16": 18.7}),
    ("P100-PCIe-12GB", "cuda", {"fp64": 4.7, "fp32": 9.3, "fp16": 18.7}),
    ("V100-PCIe-32GB", "cuda", {"fp64": 7.0, "fp32": 14.0}),
    ("V100-PCIe-32GB", "tensor", {"fp16": 112}),
    ("A30", "cuda", {"fp64": 5.2, "fp32": 10.3}),
    ("A30", "tensor", {"fp64": 10.3, "tf32": 82, "fp16": 165, "bf16": 165, "int8": 330}),
    ("A40", "cuda", {"fp32": 37.4}),
    ("A40", "tensor", {"tf32": 74.8, "fp16": 149.7, "bf16": 149.7, "int8": 299.3}),
    ("A10G", "cuda", {"fp32": 35}),
    ("A10G", "tensor", {"tf32": 35, "fp16": 70, "bf16": 70, "int8": 140}),
    ("RTX-3080-10GB", "cuda", {"fp32": 29.8}),
    ("RTX-3080-10GB", "tensor", {"tf32": 29.8, "fp16": 59.5, "bf16": 59.5, "int8": 238}),
    ("RTX-3080-12GB", "cuda", {"fp32": 30.6}),
    ("RTX-3080-12GB", "tensor", {"tf32": 30.6, "fp16": 61.3, "bf16": 61.3, "int8": 245}),
    ("L40", "cuda", {"fp32": 90.5}),
    ("L40", "tensor", {"tf32": 90.5, "fp16": 181.05, "bf16": 181.05, "fp8": 362, "int8": 362}),
    ("RTX-6000-Ada", "cuda", {"fp32": 91.1}),
    ("RTX-6000-Ada", "tensor", {"tf32": 182.1, "fp16": 364.2, "bf16": 364.2, "fp8": 728.5, "int8": 728.5}),
    ("H20", "cuda", {"fp32": 44}),
    ("H20", "tensor", {"tf32": 74, "fp16": 148, "bf16": 148, "fp8": 296, "int8": 296}),
    ("H100-SXM-96GB-HBM2e", "tensor", {"fp64": 66.9, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4}),
    ("H100-SXM-96GB-HBM2e", "tensor", {"fp8": 1978.9, "int8": 1978.9}),
    ("H200-NVL", "cuda", {"fp64": 30, "fp32": 60}),
    ("H200-NVL", "tensor", {"fp64": 60, "tf32": 417.5, "fp16": 835.5, "bf16": 835.5, "fp8": 1670.5, "int8": 1670.5}),
    *(
        row
        for key in ("GH200-96GB", "GH200-144GB")
        for row in (
            (key, "cuda", {"fp64": 33.5, "fp32": 67}),
            (key, "tensor", {"fp64": 67, "tf32": 494, "fp16": 990, "bf16": 990, "fp8": 1979, "int8": 1979}),
        )
    ),
    ("B300", "cuda", {"fp32": 600 / 8, "fp64": 600 / 8 / 64}),
    ("B300", "tensor", {"tf32": 18e3 / 16, "fp16": 36e3 / 16, "bf16": 36e3 / 16, "fp8": 72e3 / 16}),
    ("MI325X", "cuda", {"fp64": 81.7, "fp32": 163.4}),
    ("MI325X", "tensor", {"fp64": 163.4, "fp32": 163.4, "tf32": 653.7, "fp16": 1307.4, "bf16": 1307.4}),
    ("MI325X", "tensor", {"fp8": 2614.9, "int8": 2614.9}),
    ("MI355X", "cuda", {"fp64": 78.6, "fp32": 157.3}),
    ("MI355X", "tensor", {"fp64": 78.6, "fp32": 157.3, "fp16": 2516.6, "bf16": 2516.6, "fp8": 5033, "int8": 5033}),
    ("RX-7900-XTX", "cuda", {"fp32": 61.4, "fp16": 122.8}),
    ("K80", "cuda", {"fp64": 2.91 / 2, "fp32": 8.74 / 2}),
    ("GTX-1080-Ti", "cuda", {"fp32": 11.3}),
    ("TITAN-RTX", "cuda", {"fp32": 16.3}),
    ("TITAN-RTX", "tensor", {"fp16": 130, "int8": 261}),
    ("RTX-8000", "cuda", {"fp32": 16.3}),
    ("RTX-8000", "tensor", {"fp16": 130.5, "int8": 261}),
    ("A16", "cuda", {"fp32": 4.5}),
    ("A16", "tensor", {"tf32": 9, "fp16": 17.9, "bf16": 17.9, "int8": 35.9}),
    ("RTX-PRO-6000", "cuda", {"fp32": 125}),
    ("RTX-PRO-6000", "tensor", {"tf32": 251.9, "fp16": 503.8, "bf16": 503.8, "fp8": 1007.6, "int8": 1007.6}),
    ("H800-SXM", "tensor", {"tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9, "int8": 1978.9}),
    ("A800-80GB", "cuda", {"fp64": 9.7, "fp32": 19.5}),
    ("A800-80GB", "tensor", {"fp64": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624}),
]

# Printed memory: GB, and GB/s.
_MEMORY = {
    "P100-SXM2": (16, 732),
    "P100-PCIe-16GB": (16, 732),
    "P100-PCIe-12GB": (12, 549),
    "A30": (24, 933),
    "A40": (48, 696),
    "A10G": (24, 600),
    "RTX-3080-10GB": (10, 760),
    "RTX-3080-12GB": (12, 912),
    "L40": (48, 864),
    "RTX-6000-Ada": (48, 960),
    "H20": (96, 4000),
    "H200-NVL": (141, 4800),
    "GH200-96GB": (96, 4000),
    "GH200-144GB": (144, 4900),
    "B300": (288, 8000),
    "MI325X": (256, 6000),
    "MI355X": (288, 8000),
    "RX-7900-XTX": (24, 960),
    "K80": (24 / 2, 480 / 2),
    "GTX-1080-Ti": (11, 484),
    "TITAN-RTX": (24, 672),
    "RTX-8000": (48, 672),
    "A16": (64 / 4, 800 / 4),
    "RTX-PRO-6000": (96, 1792),
    "H800-SXM": (80, 3350),
    "A800-80GB": (80, 2039),
}

# Printed dense peaks in TFLOP/s (TOP/s for int8), from the vendor's datasheets and white papers.
_PRINTED = [
    ("T4", "fp64", "cuda", 8.1 / 32),
    ("T4", "fp32", "cuda", 8.1),
    ("T4", "fp16", "tensor", 65),
    ("T4", "int8", "tensor", 130),
    ("V100-16GB", "fp64", "cuda", 7.8),
    ("V100-16GB", "fp32", "cuda", 15.7),
    ("V100-16GB", "fp16", "tensor", 125),
    ("V100-16GB", "int8", "cuda", 62.6),
    ("V100-32GB", "fp16", "tensor", 125),
    *(
        row
        for key in ("A100-40GB", "A100-80GB", "A100-80GB-PCIe")
        for row in (
            (key, "fp64", "cuda", 9.7),
            (key, "fp64", "tensor", 19.5),
            (key, "fp32", "cuda", 19.5),
            (key, "fp16", "cuda", 78),
            (key, "bf16", "cuda", 39),
            (key, "tf32", "tensor", 156),
            (key, "fp16", "tensor", 312),
            (key, "bf16", "tensor", 312),
            (key, "int8", "tensor", 624),
        )
    ),
    *(
        row
        for key in ("H100-SXM", "H200")
        for row in (
            (key, "fp64", "cuda", 33.5),
            (key, "fp64", "tensor", 66.9),
            (key, "fp32", "cuda", 66.9),
            (key, "fp16", "cuda", 133.8),
            (key, "tf32", "tensor", 494.7),
            (key, "bf16", "tensor", 989.4),
            (key, "fp8", "tensor", 1978.9),
            (key, "int8", "tensor", 1978.9),
        )
    ),
    ("H100-PCIe", "fp64", "cuda", 25.6),
    ("H100-PCIe", "fp64", "tensor", 51.2),
    ("H100-PCIe", "fp32", "cuda", 51.2),
    ("H100-PCIe", "tf32", "tensor", 378),
    ("H100-PCIe", "bf16", "tensor", 756),
    ("H100-PCIe", "fp8", "tensor", 1513),
    ("V100-PCIe-16GB", "fp64", "cuda", 7.0),
    ("V100-PCIe-16GB", "fp32", "cuda", 14.0),
    ("V100-PCIe-16GB", "fp16", "tensor", 112),
    *((key, dtype, unit, peak) for key, unit, peaks in _ROWS for dtype, peak in peaks.items()),
]

_NAMES = {
    "Tesla T4": "T4",
    "Tesla V100-SXM2-16GB": "V100-16GB",
    "Tesla V100-SXM2-32GB": "V100-32GB",
    "NVIDIA A100-SXM4-40GB": "A100-40GB",
    "A100-SXM4-40GB": "A100-40GB",
    "NVIDIA A100-SXM4-80GB": "A100-80GB",
    "NVIDIA A100 80GB PCIe": "A100-80GB-PCIe",
    "NVIDIA H100 80GB HBM3": "H100-SXM",
    "NVIDIA H100 PCIe": "H100-PCIe",
    "NVIDIA H200": "H200",
    "  nvidia   h200 ": "H200",
    "Tesla V100-PCIE-16GB": "V100-PCIe-16GB",
    "NVIDIA A100-PCIE-40GB": "A100-40GB-PCIe",
    "NVIDIA A10": "A10",
    "NVIDIA RTX A6000": "A6000",
    "NVIDIA GeForce RTX 3090": "RTX-3090",
    "GeForce RTX 3090": "RTX-3090",
    "NVIDIA GeForce RTX 4090": "RTX-4090",
    "NVIDIA GeForce RTX 5090": "RTX-5090",
    "NVIDIA L4": "L4",
    "NVIDIA L40S": "L40S",
    "NVIDIA H100 NVL": "H100-NVL",
    "NVIDIA B200": "B200",
    "NVIDIA GB200": "GB200",
    "AMD Instinct MI250X": "MI250X-GCD",
    "AMD Instinct MI300X": "MI300X",
    "AMD Instinct MI300X OAM": "MI300X",
    "AMD Instinct MI325X": "MI325X",
    "AMD Instinct MI355X": "MI355X",
    "AMD Radeon RX 7900 XTX": "RX-7900-XTX",
    "Tesla K80": "K80",
    "NVIDIA GeForce GTX 1080 Ti": "GTX-1080-Ti",
    "TITAN RTX": "TITAN-RTX",
    "Quadro RTX 8000": "RTX-8000",
    "NVIDIA A16": "A16",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTX-PRO-6000",
    "NVIDIA H800": "H800-SXM",
    "NVIDIA A800-SXM4-80GB": "A800-80GB",
    "Tesla P100-SXM2-16GB": "P100-SXM2",
    "Tesla P100-PCIE-16GB": "P100-PCIe-16GB",
    "Tesla P100-PCIE-12GB": "P100-PCIe-12GB",
    "Tesla V100-PCIE-32GB": "V100-PCIe-32GB",
    "NVIDIA Tesla V100-SXM2-16GB": "V100-16GB",
    "NVIDIA A30": "A30",
    "NVIDIA A40": "A40",
    "NVIDIA A10G": "A10G",
    "NVIDIA L40": "L40",
    "NVIDIA H20": "H20",
    "NVIDIA H200 NVL": "H200-NVL",
    "NVIDIA GH200 480GB": "GH200-96GB",
    "NVIDIA GH200 144G HBM3e": "GH200-144GB",
    "NVIDIA B300 SXM6 AC": "B300",
    "NVIDIA RTX 6000 Ada Generation": "RTX-6000-Ada",
    "NVIDIA RTX 6000 Ada Gene...": "RTX-6000-Ada",
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5a1b)": "H100-SXM",
    "NVIDIA H100 80GB HBM3 MIG 3g.40gb": "H100-SXM MIG 3g.40gb",
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb": "A100-40GB MIG 1g.5gb",
    "NVIDIA H200 MIG 3g.71gb": "H200 MIG 3g.71gb",
}

_STRANGERS = [
    "NVIDIA GeForce RTX 3080",  # two cards have this name
    "NVIDIA GeForce RTX 3080 Ti",
    "NVIDIA GeForce ...",
    "NVIDIA H20-3e",
    "NVIDIA H20 141GB HBM3e",
    "NVIDIA H100 80GB HBM3 MIG 9g.90gb",
    "NVIDIA H100 PCIe MIG 1g.10gb",
    "NVIDIA A10-24Q",
    "AMD Instinct MI300X VF",
    "Quadro RTX 6000",
    "NVIDIA H100",
    "NVIDIA H100 80GB HBM2e",
    "NVIDIA L20",
    "NVIDIA GeForce RTX 3090 Ti",
    "NVIDIA GeForce RTX 4090 D",
    "NVIDIA GeForce RTX 4090 Laptop GPU",
    "NVIDIA GeForce RTX 5090 D",
    "NVIDIA RTX A5000",
    "NVIDIA B100",
    "NVIDIA GB300",
    "NVIDIA GB10",
    "AMD Instinct MI250",
    "AMD Instinct MI300A",
    "NVIDIA A100X",
    "NVIDIA H800 PCIe",
    "NVIDIA A800 80GB PCIe",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "NVIDIA T400 4GB",
    "NVIDIA T4G",
    "Tesla V100-SXM3-32GB",
    "Tesla V100-SXM2-32GB-LS",
    "Tesla V100-DGXS-32GB",
    "NVIDIA NVIDIA H200",
    "NVIDIA",
    "H100",
    "",
]


def test_the_table_holds_at_least_twenty_accelerators_each_with_a_name_that_drivers_report():
    assert 20 <= len(table())
    assert {"H100-SXM-96GB-HBM2e"} == {entry.key for entry in table() if not entry.reported_names}
    for entry in table():
        for name in entry.reported_names:
            assert lookup(name, memory_bytes=entry.memory_bytes) is entry


@pytest.mark.parametrize("entry", table(), ids=lambda entry: entry.key)
def test_memory_capacity_and_bandwidth_are_of_one_kind(entry):
    assert entry.memory_kind.startswith(("HBM", "GDDR"))
    slowest_hbm = 0.5e12 if entry.architecture == "Pascal" else 0.85e12
    assert (entry.memory_bandwidth_byte_per_s > slowest_hbm) >= entry.memory_kind.startswith("HBM")


@pytest.mark.parametrize(("key", "printed"), _MEMORY.items())
def test_memory_is_what_the_datasheet_prints(key, printed):
    entry = accelerator(key)

    assert printed == (entry.memory_bytes / 1e9, entry.memory_bandwidth_byte_per_s / 1e9)


@pytest.mark.parametrize(("key", "dtype", "unit", "printed_tflop_per_s"), _PRINTED)
def test_a_derived_peak_is_within_one_and_a_half_percent_of_the_datasheet(key, dtype, unit, printed_tflop_per_s):
    derived = accelerator(key).peak_flop_per_s(dtype, unit=unit)

    assert pytest.approx(printed_tflop_per_s * 1e12, rel=0.015) == derived


def test_every_tensor_rate_of_the_table_is_compared_with_a_printed_one():
    compared = {(key, dtype) for key, dtype, unit, _ in _PRINTED if unit == "tensor"}
    rates = {(entry.key, rate.dtype) for entry in table() for rate in entry.rates if rate.unit == "tensor"}

    # fp16 runs at bf16's rate wherever both exist, int8 at fp8's.
    assert {("H100-SXM", "fp16"), ("H100-PCIe", "fp16"), ("H100-PCIe", "int8"), ("H200", "fp16")} == rates - compared


@pytest.mark.parametrize(("reported", "key"), _NAMES.items())
def test_a_reported_name_finds_its_accelerator(reported, key):
    found = lookup(reported)

    assert found is not None
    assert key == found.key


@pytest.mark.parametrize("reported", [*_STRANGERS, None, 7])
def test_an_unlisted_name_finds_nothing_rather_than_a_neighbour(reported):
    assert lookup(reported) is None


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *_NAMES.items(),
        ("rtx4090", "RTX-4090"),
        ("a100 80 gb pcie", "A100-80GB-PCIe"),
        ("A100-80GB-330W", "A100-80GB"),
        ("H100 SXM", "H100-SXM"),
        ("H100-SXM-96GB-HBM2e-500W", "H100-SXM-96GB-HBM2e"),
        ("P100", "P100-SXM2"),
        ("GH200", "GH200-96GB"),
        ("RTX 3080 12GB", "RTX-3080-12GB"),
        ("RTX 6000 Ada", "RTX-6000-Ada"),
        ("H100 1g.10gb", "H100-SXM MIG 1g.10gb"),
        ("H100-SXM MIG 1g.10gb", "H100-SXM MIG 1g.10gb"),
    ],
)
def test_an_accelerator_and_a_machine_are_found_by_what_people_and_drivers_write(name, key):
    found = accelerator(name)

    assert key == found.key == accelerator(found.key).key
    assert key == Machine.of(name).hardware_key
    assert found.sm_count == Machine.of(name).units


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("NVIDIA GeForce RTX 3080", "may be RTX-3080-10GB or RTX-3080-12GB"),
        ("A100 PCIe", "may be A100-80GB-PCIe or A100-40GB-PCIe"),
        ("H100 80GB", "may be H100-SXM or H100-PCIe"),
    ],
)
def test_a_name_of_several_cards_is_told_which(name, told):
    with pytest.raises(EdlError) as caught:
        accelerator(name)

    assert told in caught.value.what
    assert told.split()[2] in caught.value.next


@pytest.mark.parametrize(("name", "near"), [("NVIDIA H300", "H200"), ("MI300", "MI300X"), ("RTX 4090 D", "RTX-4090")])
def test_a_stranger_is_told_names_like_its_own(name, near):
    with pytest.raises(EdlError) as caught:
        accelerator(name)

    assert near in caught.value.next.partition("nearest: ")[2].split(", ")


def test_what_else_a_driver_reports_tells_two_cards_of_one_name_apart():
    name = "NVIDIA GeForce RTX 3080"

    assert "RTX-3080-12GB" == lookup(name, sm_count=70, memory_bytes=12 << 30).key
    assert "RTX-3080-10GB" == lookup(name, sm_count=68).key
    assert lookup(name, sm_count=72) is None


@pytest.mark.parametrize(
    ("name", "sm_count", "memory_bytes", "key"),
    [
        ("Tesla V100-SXM2-16GB", 80, 16_945_512_448, "V100-16GB"),
        ("Tesla V100-SXM2-16GB", 1, 10**9, None),
        ("Tesla V100-SXM2-16GB", 80, 10**9, None),
        ("Tesla V100-SXM2-16GB", 40, None, None),
        ("NVIDIA H200", 132, 150_109_880_320, "H200"),
        ("NVIDIA H200", 114, None, None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16, 10_200_547_328, "H100-SXM MIG 1g.10gb"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 132, None, None),
    ],
)
def test_a_name_that_what_else_is_reported_contradicts_finds_nothing(name, sm_count, memory_bytes, key):
    found = lookup(name, sm_count=sm_count, memory_bytes=memory_bytes)

    assert key == (found.key if found else None)


@pytest.mark.parametrize(
    ("name", "sm_count", "eighths"),
    [
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16, 1),
        ("NVIDIA H100 80GB HBM3 MIG 1g.20gb", 26, 2),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", 60, 4),
        ("NVIDIA A100-SXM4-80GB MIG 7g.80gb", 98, 8),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb+me", 42, 4),
        ("NVIDIA A30 MIG 1g.6gb", 14, 2),
    ],
)
def test_a_slice_has_its_sms_and_its_share_of_memory_of_its_parent(name, sm_count, eighths):
    part, whole = accelerator(name), accelerator(name.partition(" MIG ")[0])

    assert sm_count == part.sm_count
    assert eighths / 8 == part.memory_bytes / whole.memory_bytes
    assert eighths / 8 == part.memory_bandwidth_byte_per_s / whole.memory_bandwidth_byte_per_s
    assert pytest.approx(sm_count / whole.sm_count) == part.peak_flop_per_s("bf16") / whole.peak_flop_per_s("bf16")
    assert part.l2_bytes == whole.l2_bytes * eighths // 8
    assert "MIG" in part.source("sm_count")


def test_an_unlisted_slice_is_told_those_of_its_gpu():
    with pytest.raises(EdlError) as caught:
        accelerator("NVIDIA H100 80GB HBM3 MIG 9g.90gb")

    assert "there is no MIG profile 9g.90gb of H100-SXM in the hardware table" == caught.value.what
    assert "1g.10gb, 1g.20gb" in caught.value.why


def test_every_card_of_the_published_steps_is_found():
    published = """RTX-3090 B200 H100-SXM-96GB-HBM2e-500W L4 A100 A100-80GB-PCIe A100-80GB-330W V100-PCIe-32GB A10 H200
        T4 A100-40GB-PCIe V100-16GB RTX-4090 A100-80GB V100-32GB H100-SXM A100-40GB A6000"""
    labels = published.split()

    assert labels == [*filter(accelerator, labels)]


def test_a_key_or_alias_finds_its_entry_and_a_stranger_is_told_the_keys():
    assert "A100-80GB" == accelerator("a100").key
    with pytest.raises(EdlError) as caught:
        accelerator("A100X")

    assert "there is no accelerator 'A100X' in the hardware table" == caught.value.what
    assert "A100-80GB-PCIe" in caught.value.why


def test_the_faster_unit_is_taken_unless_one_is_named():
    a100 = accelerator("A100-80GB")

    assert a100.peak_flop_per_s("fp16", unit="tensor") == a100.peak_flop_per_s("float16")
    assert 4 == a100.peak_flop_per_s("fp16") / a100.peak_flop_per_s("fp16", unit="cuda")
    assert a100.peak_flop_per_s("fp32", unit="cuda") == a100.peak_flop_per_s("fp32")


@pytest.mark.parametrize(("key", "dtype"), [("T4", "bf16"), ("V100-16GB", "tf32"), ("A100-80GB", "fp8")])
def test_a_dtype_that_the_chip_lacks_is_refused_not_guessed(key, dtype):
    with pytest.raises(EdlError) as caught:
        accelerator(key).peak_flop_per_s(dtype)

    assert f"has no {dtype} rate" in caught.value.what


def test_peaks_are_dense_unless_sparse_is_said():
    h100 = accelerator("H100-SXM")

    assert 2 * h100.peak_flop_per_s("bf16") == h100.peak_flop_per_s("bf16", sparse=True)
    for key, dtype in (("V100", "fp16"), ("A100", "fp64")):
        with pytest.raises(EdlError):
            accelerator(key).peak_flop_per_s(dtype, sparse=True)


@pytest.mark.parametrize(
    ("key", "dtype", "ridge"), [("V100", "fp16", 138.9), ("A100-80GB", "fp16", 153.0), ("H200", "bf16", 206)]
)
def test_ridge_points_are_those_of_the_lectures(key, dtype, ridge):
    assert pytest.approx(ridge, rel=0.01) == accelerator(key).ridge_flop_per_byte(dtype)


@pytest.mark.parametrize(
    ("generation", "lanes", "gigabyte_per_s"), [(3, 8, 7.88), (3, 16, 15.75), (4, 16, 31.51), (5, 16, 63.0)]
)
def test_pcie_rates_count_the_line_encoding(generation, lanes, gigabyte_per_s):
    assert pytest.approx(gigabyte_per_s, rel=1e-3) == pcie_byte_per_s(generation, lanes) / 1e9


def test_a_link_is_the_one_of_its_generation():
    assert pcie_byte_per_s(5) == accelerator("H200").link_byte_per_s


@pytest.mark.parametrize("wrong", [{"sm_count": 0}, {"clock_hz": float("nan")}, {"fma_per_clock_per_sm": -1}])
def test_a_peak_of_no_sensible_counts_is_refused(wrong):
    with pytest.raises(EdlError):
        flop_rate(**{"sm_count": 108, "fma_per_clock_per_sm": 1024, "clock_hz": 1.41e9, **wrong})


@pytest.mark.parametrize(("generation", "lanes"), [(0, 16), (9, 16), (4, 3)])
def test_a_link_that_does_not_exist_is_refused(generation, lanes):
    with pytest.raises(EdlError):
        pcie_byte_per_s(generation, lanes)


def test_dtype_names_of_torch_are_understood_and_others_refused():
    assert ["fp16", "bf16", "fp32"] == [dtype_name(name) for name in ("torch.half", "bfloat16", "torch.float32")]
    with pytest.raises(EdlError):
        dtype_name("float80")


def test_every_figure_has_a_source_and_the_entry_is_plain_data():
    for entry in table():
        figures = {field.name for field in dataclasses.fields(Accelerator) if field.type in ("int", "float")}

        assert {*figures, "fma_per_clock_per_sm"} == {name for name, text in entry.sources if text}
        assert entry.key == json.loads(json.dumps(entry.to_dict()))["key"]
        assert hash(entry)


_MINIMAL = """
[sm.X]
architecture = "X"
source = "s"
cuda = {{ fp32 = 64 }}
tensor = {{}}
sparse_factor = {{}}
[[accelerator]]
key = "X1"
name = "X1"
sm = "X"
aliases = {aliases}
reported_names = ["X1"]
sm_count = 1
boost_clock_hz = 1e9
tensor_clock_hz = 1e9
memory_bytes = 1e9
memory_bandwidth_byte_per_s = 1e9
l2_bytes = 1
pcie_generation = 3
pcie_lanes = 16
nvlink_byte_per_s = 0.0
[accelerator.sources]
sm_count = "s"
boost_clock_hz = "s"
tensor_clock_hz = "s"
memory_bytes = "s"
memory_bandwidth_byte_per_s = "s"
l2_bytes = "s"
pcie_generation = "s"
pcie_lanes = "s"
nvlink_byte_per_s = "{source}"
"""


def test_a_well_formed_table_is_read():
    assert ("X1",) == tuple(entry.key for entry in parse(_MINIMAL.format(aliases=[], source="s")))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_MINIMAL.format(aliases=[], source=""), "no source for nvlink_byte_per_s"),
        ("schema = 1", "accelerator"),
        ("[[accelerator]\n", "TOMLDecodeError"),
        ("accelerator = 3\nsm = 3", "TypeError"),
    ],
)
def test_a_malformed_table_is_an_error_that_says_where(text, why):
    with pytest.raises(EdlError) as caught:
        parse(text)

    assert why in caught.value.why


def test_a_name_that_leads_to_two_entries_is_refused():
    with pytest.raises(EdlError) as caught:
        parse(_MINIMAL.format(aliases=["x1"], source="s"))

    assert "the hardware table has the key 'x1' twice" == caught.value.what
