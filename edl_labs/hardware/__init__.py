"""Datasheet table, peak arithmetic and recordings: data, and how to read it."""

from __future__ import annotations

from edl_labs.hardware._accelerator import (
    Accelerator,
    Rate,
    accelerator,
    dtype_name,
    flop_rate,
    lookup,
    pcie_byte_per_s,
    table,
)

__all__ = ["Accelerator", "Rate", "accelerator", "dtype_name", "flop_rate", "lookup", "pcie_byte_per_s", "table"]
