"""Datasheet table, peak arithmetic and recordings: data, and how to read it."""

from __future__ import annotations

from edl_labs.hardware._accelerator import accelerator, lookup, table
from edl_labs.hardware.links import Link, Topology, link, links, topologies, topology
from edl_labs.hardware.peaks import Accelerator, Rate, dtype_name, flop_rate, pcie_byte_per_s

__all__ = [
    "Accelerator",
    "Link",
    "Rate",
    "Topology",
    "accelerator",
    "dtype_name",
    "flop_rate",
    "link",
    "links",
    "lookup",
    "pcie_byte_per_s",
    "table",
    "topologies",
    "topology",
]
