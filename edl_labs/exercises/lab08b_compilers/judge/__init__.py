"""Draws the hidden cases of lab08b_compilers."""

from __future__ import annotations
