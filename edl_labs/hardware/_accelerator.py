"""The hardware table: accelerators found by key, alias, or the name that torch, a driver or a person gives them."""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import EdlError
from edl_labs.hardware.device_names import DeviceName, taken_apart
from edl_labs.hardware.peaks import Accelerator, Rate

_FIGURES = (
    "sm_count",
    "boost_clock_hz",
    "tensor_clock_hz",
    "memory_bytes",
    "memory_bandwidth_byte_per_s",
    "l2_bytes",
    "pcie_generation",
    "pcie_lanes",
    "nvlink_byte_per_s",
)
_WHOLE = ("sm_count", "memory_bytes", "l2_bytes", "pcie_generation", "pcie_lanes")


@cache
def table() -> tuple[Accelerator, ...]:
    """Every accelerator of the table, in its order."""
    return parse(_text())


def parse(text: str) -> tuple[Accelerator, ...]:
    """The accelerators of a TOML table in the shape of `accelerators.toml`; raises EdlError where it is malformed."""
    try:
        raw = tomllib.loads(text)
        found = tuple(_entry(entry, raw["sm"][entry["sm"]]) for entry in raw["accelerator"])
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise EdlError(
            "the hardware table cannot be read",
            why=f"{type(error).__name__}: {error}",
            next="compare the entry with its neighbours in edl_labs/hardware/accelerators.toml",
        ) from error
    _refuse_twice_the_same_name(found)
    return found


def lookup(reported_name: str, *, sm_count: int | None = None, memory_bytes: int | None = None) -> Accelerator | None:
    """The accelerator that a driver calls `reported_name`, or None: never a neighbour's numbers.

    What else the driver reports (`sm_count`, `memory_bytes`) tells cards of one name apart, and contradicts a name that
    another card goes by.

    >>> lookup("NVIDIA H100 80GB HBM3").key
    'H100-SXM'
    >>> lookup("NVIDIA H100 80GB HBM3 MIG 1g.10gb").sm_count
    16
    >>> lookup("NVIDIA L20") is None
    True
    """
    found = _meant(reported_name, _reported()) if isinstance(reported_name, str) else ()
    found = tuple(one for one in found if _agrees(one, sm_count=sm_count, memory_bytes=memory_bytes))
    return found[0] if len(found) == 1 else None


@checked_arguments()
def accelerator(name: str) -> Accelerator:
    """The accelerator with this table key, alias or name: 'A100-80GB', 'H100', or what torch and nvidia-smi print.

    >>> accelerator("Tesla P100-PCIE-16GB").key
    'P100-PCIe-16GB'
    """
    if not isinstance(name, str):
        raise _unknown(repr(name))
    found = _meant(name, _keys()) or _meant(name, _reported())
    if not found:
        raise _unknown(name)
    if len(found) > 1:
        keys = [entry.key for entry in found]
        raise EdlError(
            f"{name[:60]!r} is ambiguous: it may be {' or '.join(keys)}",
            why="the name matches all of these, and their specifications differ",
            next=f"choose one: {keys[0]!r}, or give the full name that the driver prints",
        )
    return found[0]


def _unknown(name: str) -> EdlError:
    entry, profile = _parent_of(name)
    if entry is not None and profile:
        listed = ", ".join(_profiles(entry)) or "none"
        return EdlError(
            f"there is no MIG profile {profile} of {entry.key} in the hardware table",
            why=f"for this GPU, the table lists: {listed}",
            next="use one of these, or multiply the whole GPU's figures by the profile's share of the SMs",
        )
    near = _near(name)
    return EdlError(
        f"there is no accelerator {name[:60]!r} in the hardware table",
        why=f"its keys are {', '.join(entry.key for entry in table())}",
        next=f"use one of these keys or the name that the driver prints{f'; the nearest: {near}' if near else ''}",
    )


def _near(name: str) -> str:
    """Keys whose names are spelt most like `name`, in words."""
    asked = " ".join(taken_apart(name).words)
    spelt = {" ".join(said.words): entry.key for said, entry in (*_keys(), *_reported())}
    found = difflib.get_close_matches(asked, spelt, n=4, cutoff=0.6)
    return ", ".join(dict.fromkeys(spelt[one] for one in found))


def _meant(name: str, names: tuple[tuple[DeviceName, Accelerator], ...]) -> tuple[Accelerator, ...]:
    """The entries that `name` can mean: those of exactly these words, else those that fit all that it says."""
    asked = taken_apart(name)
    found = [entry for said, entry in names if said.words == asked.words and asked.words]
    if not found:
        rivals = [entry for entry in table() if _described(entry).model == asked.model]
        found = [entry for entry in rivals if asked.fits(_described(entry))]
        # One that fits is not enough where the name leaves out the form that tells rivals apart: an unlisted card may.
        if len(found) == 1 and not asked.form and len({_described(entry).form for entry in rivals}) > 1:
            found = []
    found = list(dict.fromkeys(found))
    if asked.mig_profile:
        found = [_slice(entry, asked.mig_profile) for entry in found if asked.mig_profile in _profiles(entry)]
    return tuple(found)


def _parent_of(name: str) -> tuple[Accelerator | None, str]:
    """The whole GPU that the name of a slice means, where it means one, and the slice's profile."""
    profile = taken_apart(name).mig_profile
    whole = name.casefold().replace(profile, "").replace("mig", "").split("+")[0]
    found = (_meant(whole, _keys()) or _meant(whole, _reported())) if profile else ()
    return (found[0] if len(found) == 1 else None), profile


def _agrees(entry: Accelerator, *, sm_count: int | None, memory_bytes: int | None) -> bool:
    # A driver keeps some memory for itself: up to 12 % (GH200), never more than the card has in binary units.
    if sm_count is not None and sm_count != entry.sm_count:
        return False
    return memory_bytes is None or 0.88 <= memory_bytes / entry.memory_bytes <= 1.074


def _slice(entry: Accelerator, profile: str) -> Accelerator:
    """A MIG slice as an accelerator of its own: its SMs, and its share of memory, bandwidth and L2."""
    sm_count, share, source = _profiles(entry)[profile]
    of_parent = f"{source}: {share:.4g} of {entry.key}"
    sources = {
        **dict(entry.sources),
        **dict.fromkeys(("memory_bytes", "memory_bandwidth_byte_per_s", "l2_bytes"), of_parent),
        "sm_count": source,
        "nvlink_byte_per_s": f"{source}: slices have no link to other GPUs",
    }
    return dataclasses.replace(
        entry,
        key=f"{entry.key} MIG {profile}",
        name=f"{entry.name} MIG {profile}",
        reported_names=tuple(f"{name} MIG {profile}" for name in entry.reported_names),
        aliases=(),
        sm_count=sm_count,
        memory_bytes=int(entry.memory_bytes * share),
        memory_bandwidth_byte_per_s=entry.memory_bandwidth_byte_per_s * share,
        l2_bytes=int(entry.l2_bytes * share),
        nvlink_byte_per_s=0.0,
        sources=tuple(sources.items()),
    )


def _profiles(entry: Accelerator) -> dict[str, tuple[int, float, str]]:
    """SMs, share of memory and source of each MIG profile of an accelerator; empty where none is listed."""
    return _mig().get(entry.key, {})


@cache
def _mig() -> dict[str, dict[str, tuple[int, float, str]]]:
    return {
        parent: {
            name: (int(sms), slices / group["memory_slices"], str(group["source"]))
            for name, (sms, slices) in group["profiles"].items()
        }
        for group in tomllib.loads(_text())["mig"]
        for parent in group["parents"]
    }


@cache
def _reported() -> tuple[tuple[DeviceName, Accelerator], ...]:
    return tuple((taken_apart(name), entry) for entry in table() for name in entry.reported_names)


@cache
def _keys() -> tuple[tuple[DeviceName, Accelerator], ...]:
    return tuple((taken_apart(name), entry) for entry in table() for name in (entry.key, *entry.aliases))


@cache
def _described(entry: Accelerator) -> DeviceName:
    """The full description that a name is held against: the entry's own, with its memory."""
    said = taken_apart(entry.name)
    return dataclasses.replace(
        said, memory_gb=round(entry.memory_bytes / 1e9), memory_kind=entry.memory_kind.casefold()
    )


def _text() -> str:
    return resources.files("edl_labs.hardware").joinpath("accelerators.toml").read_text(encoding="utf-8")


def _entry(entry: dict[str, Any], sm: dict[str, Any]) -> Accelerator:
    unsourced = [figure for figure in _FIGURES if not str(entry["sources"].get(figure, "")).strip()]
    if unsourced:
        raise ValueError(f"{entry['key']}: no source for {', '.join(unsourced)}")
    figures = {name: int(entry[name]) if name in _WHOLE else float(entry[name]) for name in _FIGURES}
    sources = {**{name: str(entry["sources"][name]) for name in _FIGURES}, "fma_per_clock_per_sm": str(sm["source"])}
    return Accelerator(
        key=str(entry["key"]),
        name=str(entry["name"]),
        architecture=str(sm["architecture"]),
        memory_kind=str(entry.get("memory_kind", "")),
        reported_names=tuple(entry["reported_names"]),
        aliases=tuple(entry["aliases"]),
        rates=_rates(entry, sm),
        sources=tuple(sources.items()),
        **figures,  # type: ignore[arg-type]
    )


def _rates(entry: dict[str, Any], sm: dict[str, Any]) -> tuple[Rate, ...]:
    boost, tensor = float(entry["boost_clock_hz"]), float(entry["tensor_clock_hz"])
    cuda = [Rate("cuda", dtype, int(count), boost) for dtype, count in sm["cuda"].items()]
    # Hopper's printed fp64 tensor peaks rest on the boost clock, the other tensor peaks on a lower one.
    return tuple(cuda) + tuple(
        Rate(
            "tensor",
            dtype,
            int(count),
            boost if dtype == "fp64" else tensor,
            float(sm["sparse_factor"].get(dtype, 1)),
        )
        for dtype, count in sm["tensor"].items()
    )


def _refuse_twice_the_same_name(entries: tuple[Accelerator, ...]) -> None:
    # Cards of one reported name are told apart by their memory; keys and aliases have nothing else.
    reported = [(_plain(name), entry.memory_bytes) for entry in entries for name in entry.reported_names]
    keys = [(name.casefold(), 0) for entry in entries for name in (entry.key, *entry.aliases)]
    for kind, names in (("reported name", reported), ("key", keys)):
        twice = sorted({name for name, size in names if names.count((name, size)) > 1})
        if twice:
            raise EdlError(
                f"the hardware table has the {kind} {twice[0]!r} twice",
                why="a name must identify a single accelerator",
                next="remove one of the two from edl_labs/hardware/accelerators.toml",
            )


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold().removeprefix("nvidia ")
