"""What is stored and how it is read: the cases of read_plan, storage_format and decode_once."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab04_data_pipelines.read_plan import PAGE

# (name, seek, rate): a spinning disk, NVMe, and an object store over the network, each varied by the draw.
_DISKS = (("hdd", 8e-3, 150e6), ("nvme", 80e-6, 3e9), ("object store", 50e-3, 250e6))
# Gaps as multiples of what a seek is worth: a threshold 20 % too small or 25 % too large costs some per cent of time.
_SHORTER, _LONGER = (0.7, 0.97), (1.03, 1.25)
_SHARES = (0.03, 0.25, 0.6, 1.0)  # of the samples: from scattered few to all, where other plans are best
# What a transform does to an image, with examples: fixed ones, and ones drawn anew for each sample.
NAMES = {
    "decode": ("decode a JPEG", "decode a PNG"),
    "point": ("normalise with fixed numbers", "apply a gamma", "clip to a range"),
    "move": ("mirror", "turn by 90°", "transpose"),
    "cut": ("cut a fixed window",),
    "mix": ("resize", "blur", "undo the lens's distortion"),
    "whole": ("subtract the image's own mean", "equalise the histogram"),
}
RANDOM_NAMES = {
    "point": ("random brightness", "random gamma"),
    "move": ("random flip", "random quarter turn"),
    "cut": ("random crop",),
    "mix": ("random blur", "random resize"),
}


@case_source("read_plan")
def wanted_samples(rng: Any) -> list[Case]:
    """Samples wanted of some shards, on three kinds of disk."""
    places = [(disk, share) for disk in _DISKS for share in _SHARES]
    chosen = [places[i] for i in rng.permutation(len(places))[:8]]
    return [
        Case.split(one, "disk", "shard_bytes")
        for one in [*(_plan_case(rng, disk, share) for disk, share in chosen), _close_call(rng)]
    ]


def _plan_case(rng: Any, disk: tuple[str, float, float], share: float) -> dict[str, Any]:
    name, seek_s, rate = disk
    seek_s, rate = round(seek_s * float(rng.uniform(0.6, 1.6)), 7), float(round(rate * float(rng.uniform(0.6, 1.6))))
    # Gaps on both sides of what a seek is worth, whatever the disk: samples scale with it.
    typical = max(2, int(seek_s * rate / PAGE / float(rng.uniform(4, 10))))
    shard_bytes, wanted = [], []
    for shard in range(int(rng.integers(3, 6))):
        pages = [int(n) for n in rng.integers(max(1, typical // 2), 2 * typical + 1, size=int(rng.integers(20, 40)))]
        starts = [PAGE * sum(pages[:index]) for index in range(len(pages) + 1)]
        shard_bytes.append(starts[-1])
        picks = _picks(rng, len(pages), share)
        wanted += [[shard, starts[i], starts[i + 1]] for i in picks]
    order = rng.permutation(len(wanted))
    return {
        "disk": name,
        "seek_s": seek_s,
        "byte_per_s": rate,
        "shard_bytes": shard_bytes,
        "wanted": [wanted[i] for i in order],
    }


def _close_call(rng: Any) -> dict[str, Any]:
    """Small samples with gaps a little shorter and a little longer than what a seek is worth."""
    name, seek_s, rate = _DISKS[int(rng.integers(len(_DISKS)))]
    worth = seek_s * rate
    shard_bytes, wanted = [], []
    for shard in range(3):
        stop = 0
        for times in [*rng.uniform(*_SHORTER, size=8), *rng.uniform(*_LONGER, size=16)][:: 1 if shard % 2 else -1]:
            start = stop + PAGE * round(float(times) * worth / PAGE)
            stop = start + PAGE
            wanted.append([shard, start, stop])
        shard_bytes.append(stop)
    order = rng.permutation(len(wanted))
    return {
        "disk": name,
        "seek_s": seek_s,
        "byte_per_s": rate,
        "shard_bytes": shard_bytes,
        "wanted": [wanted[i] for i in order],
    }


def _picks(rng: Any, count: int, share: float) -> list[int]:
    size = max(2, round(share * count))
    return sorted(int(i) for i in rng.choice(count, size=size, replace=False))


@case_source("storage_format")
def priced_formats(rng: Any) -> list[Case]:
    """Formats, ways to read them, and disks."""
    kinds = ("small", "columns", "random", "few columns", "cached", "many epochs", "random", "sequential", "cached")
    cases = [*(_format_case(rng, kind) for kind in kinds), _just_fitting(rng), _fitting_in_part(rng)]
    # Drawn last, so that the other cases stay what they were.
    cases += [_small_units(rng), _cached_later(rng)]
    return [Case(given=one) for one in cases]


def _format_case(rng: Any, kind: str) -> dict[str, Any]:
    def between(low: float, high: float) -> float:
        return float(rng.uniform(low, high))

    sample_bytes = int(rng.integers(2_000, 40_000) if kind == "small" else rng.integers(40_000, 300_000))
    samples, epochs = int(rng.integers(20_000, 200_000)), int(rng.integers(2, 6))
    scattered = kind in ("random", "cached", "few columns")
    access = {
        "samples": samples,
        "reads": int(samples * between(0.2, 0.8)),
        "epochs": 10 * epochs if kind == "many epochs" else epochs,
        "order": "random" if scattered else "sequential",
        "column_share": round(between(0.05, 0.4), 3) if "columns" in kind else 1.0,
    }
    _, seek_s, rate = _DISKS[int(rng.integers(3))]
    stored = samples * sample_bytes
    disk = {
        "seek_s": round(seek_s * between(0.5, 2), 7),
        "byte_per_s": float(round(rate * between(0.5, 2))),
        "open_s": round(between(30e-6, 400e-6), 7),
        "cache_bytes": int(stored * (between(0.95, 1.6) if kind == "cached" else between(0.05, 0.6))),
    }
    return {
        "forms": [_form(rng, name, sample_bytes) for name in ("raw files", "tar", "parquet", "lmdb")],
        "access": access,
        "disk": disk,
    }


def _just_fitting(rng: Any) -> dict[str, Any]:
    """One of the formats takes exactly as much as the page cache holds."""
    case = _format_case(rng, "cached")
    form = case["forms"][int(rng.integers(3))]
    case["disk"]["cache_bytes"] = case["access"]["samples"] * form["sample_bytes"]
    return case


def _fitting_in_part(rng: Any) -> dict[str, Any]:
    """Of one format's samples the page cache holds the columns that are read, and not all."""
    case = _format_case(rng, "few columns")
    form = next(form for form in case["forms"] if form["columnar"])
    share = (1 + case["access"]["column_share"]) / 2
    case["disk"]["cache_bytes"] = int(share * case["access"]["samples"] * form["sample_bytes"])
    return case


def _small_units(rng: Any) -> dict[str, Any]:
    """A random read of a few columns that are more than a unit: no sample is fetched as a whole."""
    case = _format_case(rng, "few columns")
    form = next(form for form in case["forms"] if form["columnar"])
    needed = case["access"]["column_share"] * form["sample_bytes"]
    form["unit_bytes"] = int(needed * float(rng.uniform(0.3, 0.8)))
    return case


def _cached_later(rng: Any) -> dict[str, Any]:
    """Raw files fit into the page cache and lmdb does not, which would win if there were one epoch alone."""
    case = _format_case(rng, "cached")
    raw, lmdb = (next(form for form in case["forms"] if form["name"] == name) for name in ("raw files", "lmdb"))
    lmdb["parse_s"] = raw["parse_s"]
    disk, stored = case["disk"], case["access"]["samples"] * raw["sample_bytes"]
    disk["cache_bytes"] = int(1.05 * stored)
    # More than an epoch's fewer bytes save, and less than the seeks of a second epoch cost.
    disk["open_s"] = round(0.1 * raw["sample_bytes"] / disk["byte_per_s"] + 0.3 * disk["seek_s"], 8)
    return case


def _form(rng: Any, name: str, sample_bytes: int) -> dict[str, Any]:
    grows, unit, opens = {
        "raw files": (1.0, PAGE, 1),
        "tar": (1.02, 0, 0),
        "parquet": (float(rng.uniform(0.5, 0.95)), int(rng.integers(20, 200)) * sample_bytes, 0),
        "lmdb": (1.1, 2 * PAGE, 0),
    }[name]
    # A tar has no index: finding one sample means reading on from the beginning of its shard, half of it on average.
    unit = int(rng.integers(50, 500)) * sample_bytes if name == "tar" else unit
    return {
        "name": name,
        "sample_bytes": int(sample_bytes * grows),
        "unit_bytes": unit,
        "opens_per_sample": opens,
        "columnar": name == "parquet",
        "parse_s": round(float(rng.uniform(2e-6, 80e-6)), 8),
    }


@case_source("decode_once")
def chains(rng: Any) -> list[Case]:
    """Chains of transforms: some that single mistakes get wrong, then random ones."""
    fixed = [
        ["decode", "mix", "~cut", "point"],
        ["decode", "~move", "whole", "point"],
        ["decode", "~cut", "mix", "point"],
        ["decode", "~point", "point", "~move", "point"],
        ["decode", "mix", "point", "whole"],
        ["decode", "~cut", "whole", "point"],
    ]
    # Pairs of kinds that the chains above do not tell from one that may be exchanged.
    met = [
        ["decode", "~move", "move", "cut"],
        ["decode", "~cut", "cut", "move"],
        ["decode", "~mix", "mix", "whole"],
        ["decode", "~move", "mix", "whole"],
        ["decode", "~move", "cut", "point"],  # what may move stands behind one that may not
        # What passes a point change, random or not, and what passes a change by the whole image that stays.
        ["decode", "~point", "cut", "move"],
        ["decode", "~point", "whole", "move"],
    ]
    drawn = [_drawn(rng, int(rng.integers(4, 8))) for _ in range(8)]
    return [Case(given={"chain": [_transform(rng, kind) for kind in kinds]}) for kinds in [*fixed, *drawn, *met]]


def _drawn(rng: Any, length: int) -> list[str]:
    kinds = ["decode"]
    while len(kinds) < length:
        kind = str(rng.choice(["point", "move", "cut", "mix", "whole"]))
        kinds.append("~" + kind if kind in RANDOM_NAMES and rng.random() < 0.4 else kind)
    return kinds


def _transform(rng: Any, kind: str) -> dict[str, Any]:
    is_random, kind = kind.startswith("~"), kind.removeprefix("~")
    name = str(rng.choice((RANDOM_NAMES if is_random else NAMES)[kind]))
    return {"name": name, "kind": kind, "random": is_random}
