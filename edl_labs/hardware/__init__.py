"""Datasheet table, peak arithmetic, and recordings made on real accelerators."""

from __future__ import annotations

from edl_labs.hardware.accelerator import Accelerator, Rate
from edl_labs.hardware.peak import dtype_name, flop_rate, pcie_byte_per_s
from edl_labs.hardware.table import accelerator, lookup, table

__all__ = ["Accelerator", "Rate", "accelerator", "dtype_name", "flop_rate", "lookup", "pcie_byte_per_s", "table"]
