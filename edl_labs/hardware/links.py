"""Links between GPUs and the machines built of them, from the hardware table: what a message costs on each."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from edl_labs.arguments import checked_arguments
from edl_labs.errors import EdlError


@dataclass(frozen=True)
class Link:
    """One kind of link: a message of n bytes takes `alpha_s` + n / `byte_per_s` on one port, in one direction."""

    key: str
    alpha_s: float
    byte_per_s: float
    sources: tuple[tuple[str, str], ...]

    def seconds(self, nbytes: float) -> float:
        """How long a message of `nbytes` takes.

        >>> link("NVLink4").seconds(450e6)
        0.0010034
        """
        return self.alpha_s + nbytes / self.byte_per_s


@dataclass(frozen=True)
class Topology:
    """A node of the hardware table: `ranks` accelerators joined by `inside`; `outside` joins nodes.

    Each port of `outside` is shared by `ranks_per_port` neighbouring ranks.
    """

    key: str
    accelerator: str
    ranks: int
    inside: Link
    outside: Link
    ranks_per_port: int
    source: str


def links() -> tuple[Link, ...]:
    """Every link of the table, in its order."""
    return _read()[0]


def topologies() -> tuple[Topology, ...]:
    """Every node of the table, in its order."""
    return _read()[1]


@checked_arguments()
def link(key: str) -> Link:
    """The link with this key, whatever its case; EdlError where there is none."""
    return _found(key, links(), "link")


@checked_arguments()
def topology(key: str) -> Topology:
    """The node with this key, whatever its case; EdlError where there is none.

    >>> node = topology("8xh100")
    >>> node.accelerator, node.inside.key, node.outside.key
    ('H100-SXM', 'NVLink4', 'NDR')
    """
    return _found(key, topologies(), "node")


_Named = TypeVar("_Named", Link, Topology)


def _found(key: object, entries: tuple[_Named, ...], kind: str) -> _Named:
    by_key = {entry.key.casefold(): entry for entry in entries}
    plain = "".join(key.split()).casefold() if isinstance(key, str) else ""
    if plain in by_key:
        return by_key[plain]
    near = difflib.get_close_matches(plain, by_key, n=1)
    raise EdlError(
        f"there is no {kind} {str(key)[:40]!r} in the hardware table",
        why=f"its keys are {', '.join(entry.key for entry in entries)}",
        next=f"use one of these keys{f'; the nearest: {by_key[near[0]].key}' if near else ''}",
    )


@cache
def _read() -> tuple[tuple[Link, ...], tuple[Topology, ...]]:
    text = resources.files("edl_labs.hardware").joinpath("links.toml").read_text(encoding="utf-8")
    return parse(text)


def parse(text: str) -> tuple[tuple[Link, ...], tuple[Topology, ...]]:
    """The links and nodes of a table in the shape of `links.toml`; EdlError where it is malformed or unsourced."""
    try:
        raw = tomllib.loads(text)
        found = {entry["key"]: _link(entry) for entry in raw["link"]}
        nodes = tuple(_topology(entry, found) for entry in raw["topology"])
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise EdlError(
            "the table of links cannot be read",
            why=f"{type(error).__name__}: {error}",
            next="compare the entry with its neighbours in edl_labs/hardware/links.toml",
        ) from error
    return tuple(found.values()), nodes


def _link(entry: dict[str, Any]) -> Link:
    key, sources = str(entry["key"]), entry["sources"]
    for figure in ("byte_per_s", "alpha_s"):
        if not entry[figure] > 0 or not str(sources.get(figure, "")).strip():
            raise ValueError(f"{key}: {figure} needs a positive number and a source")
    named = tuple((name, str(source)) for name, source in sources.items())
    return Link(key, float(entry["alpha_s"]), float(entry["byte_per_s"]), named)


def _topology(entry: dict[str, Any], found: dict[str, Link]) -> Topology:
    ranks, shared = int(entry["ranks"]), int(entry["ranks_per_port"])
    if ranks < 1 or shared < 1 or ranks % shared or not str(entry["source"]).strip():
        raise ValueError(f"{entry['key']}: ranks must be a multiple of ranks_per_port, and a source must be given")
    return Topology(
        key=str(entry["key"]),
        accelerator=str(entry["accelerator"]),
        ranks=ranks,
        inside=found[entry["inside"]],
        outside=found[entry["outside"]],
        ranks_per_port=shared,
        source=str(entry["source"]),
    )
