"""The speed of light: how fast code could ever run on a machine, and where it stands.

>>> from edl_labs.roofline import Machine, bound, work
>>> deck = Machine.simple("GPU of 2015", peak_flop_per_s=6e12, bandwidth_byte_per_s=300e9)
>>> bound(deck, work.matvec(1024, 512)).limiter
'memory'
"""

from __future__ import annotations

from edl_labs.arguments import lazy_facade

_HOMES = {
    "Work": "work",
    "Ceiling": "machine_ceilings",
    "Machine": "machine_ceilings",
    "MemoryLevel": "machine_ceilings",
    "Bound": "_bound",
    "LimiterReport": "_bound",
    "AboveRoof": "_place",
    "Placed": "_place",
    "Point": "_place",
    "attainable_flop_per_s": "_bound",
    "Count": "_count",
    "bound": "_bound",
    "ceilings": "_ceilings",
    "count": "_count",
    "count_tiles": "work",
    "find_limiter": "_bound",
    "place": "_place",
    "place_all": "_place",
    "roof": "_bound",
    "you_are_here": "_place",
    **dict.fromkeys(("gemm", "network", "work"), ""),
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_facade(__name__, _HOMES)
