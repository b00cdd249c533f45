"""The hardware table gives derived peaks that agree with datasheets, and never a neighbour's numbers."""

from __future__ import annotations

import dataclasses
import json

import pytest

from edl_labs.errors import EdlError
from edl_labs.hardware import Accelerator, accelerator, dtype_name, flop_rate, lookup, pcie_byte_per_s, table
from edl_labs.hardware._accelerator import parse

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
]

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
}

_STRANGERS = [
    "NVIDIA H100",
    "NVIDIA H100 80GB HBM2e",
    "NVIDIA H100 80GB HBM3 MIG 3g.40gb",
    "NVIDIA H200 NVL",
    "NVIDIA A10G",
    "NVIDIA L40",
    "NVIDIA L20",
    "NVIDIA GeForce RTX 3090 Ti",
    "NVIDIA GeForce RTX 4090 D",
    "NVIDIA GeForce RTX 4090 Laptop GPU",
    "NVIDIA GeForce RTX 5090 D",
    "NVIDIA RTX 6000 Ada Generation",
    "NVIDIA RTX A5000",
    "NVIDIA B100",
    "NVIDIA B300 SXM6 AC",
    "NVIDIA GB300",
    "NVIDIA GB10",
    "AMD Instinct MI250",
    "AMD Instinct MI300A",
    "AMD Instinct MI325X",
    "NVIDIA A100X",
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    "NVIDIA GH200 480GB",
    "NVIDIA H800",
    "NVIDIA H20",
    "NVIDIA T400 4GB",
    "NVIDIA T4G",
    "Tesla V100-PCIE-32GB",
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
    assert all(entry.reported_names and lookup(entry.reported_names[0]) is entry for entry in table())


@pytest.mark.parametrize("entry", table(), ids=lambda entry: entry.key)
def test_memory_capacity_and_bandwidth_are_of_one_kind(entry):
    assert entry.memory_kind.startswith(("HBM", "GDDR"))
    assert (entry.memory_bandwidth_byte_per_s > 0.85e12) >= entry.memory_kind.startswith("HBM")


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


def test_a_key_or_alias_finds_its_entry_and_a_stranger_is_told_the_keys():
    assert "A100-80GB" == accelerator("a100").key
    with pytest.raises(EdlError) as caught:
        accelerator("A100X")

    assert "no accelerator 'A100X' in the hardware table" == caught.value.what
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
