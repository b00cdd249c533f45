"""The cases of read_the_monitors: some seconds of five monitors, with what is easily misread on them."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_TOOLS = {
    "timers by hand": ["none", "cpu", "one core", "gpu"],
    "mock trainer": ["disk", "network", "cpu"],
    "mock loader": ["gpu", "none", "one core"],
    "sampling profiler": ["cpu", "one core", "none"],
    "tracing profiler": ["gpu", "none", "one core"],
    "memory profiler": ["memory", "gpu"],
    "strace": ["disk", "network", "memory"],
}
_EVERY_ONE = {"name": "a week of reading logs", "hours": 60}
_PLAIN = {"gpus": (35, 70), "cores": (15, 55), "disk": (10, 60), "network": (10, 60), "used": (30, 70)}


@case_source("read_the_monitors")
def watched(rng: Any) -> list[Case]:
    kinds: list[dict[str, Any]] = [
        {"gpus": (92, 99), "disk": (93, 98)},
        {"gpus": (93, 99), "idle gpu": True, "full core": True},
        {"flicker": True, "disk": (40, 60)},
        {"disk": (91, 93), "cores": (18, 22), "iowait": (76, 78)},
        {"network": (92, 98)},
        {"network": (92, 98), "full core": True},
        {"disk": (94, 98), "swap": True, "used": (94, 99), "gpus": (20, 95)},
        {"cores": (94, 98), "used": (92, 98), "stale swap": True},
        {"full core": True},
        {"cores": (92, 94), "disk": (96, 99)},
        {"cores": (97, 99), "network": (92, 94)},
        {},
        {"gpus": (90, 90), "cores": (90, 90)},
        {"disk": (90, 90)},
        {"network": (90, 90)},
        {"almost": True},
        {"full core": True, "exactly": True},
        {"swap": True, "exactly": True},
        {"gpus": (98, 99), "lagging gpu": True},  # full on average, and not each of them
    ]
    return [Case(given=_case(rng, kind)) for kind in kinds]


def _case(rng: Any, kind: dict[str, Any]) -> dict[str, Any]:
    seconds, cores, gpus = int(rng.integers(2, 4)), int(rng.integers(3, 5)), int(rng.integers(2, 4))
    machine = {
        "disk_byte_per_s": int(rng.integers(3, 30)) * 100_000_000,
        "link_bit_per_s": int(rng.choice([1, 10, 25, 100])) * 1_000_000_000,
    }
    special = {"idle": int(rng.integers(gpus)), "full": int(rng.integers(cores))}
    snapshots = [
        _snapshot(rng, kind, machine, special, sizes=(cores, gpus), is_last=second == seconds - 1)
        for second in range(seconds)
    ]
    return {"snapshots": snapshots, "machine": machine, "tools": _tools(rng)}


def _snapshot(
    rng: Any,
    kind: dict[str, Any],
    machine: dict[str, int],
    special: dict[str, int],
    *,
    sizes: tuple[int, int],
    is_last: bool,
) -> dict[str, Any]:
    def drawn(what: str) -> int:
        low, high = kind.get(what, _PLAIN.get(what, (1, 6)))
        return int(rng.integers(low, high + 1))

    # In the last second a short burst fills what is half empty on average.
    burst = {"disk": 97, "gpus": 98} if kind.get("flicker") and is_last else {}
    gpus = [
        {"utilisation_percent": burst.get("gpus", drawn("gpus")), "memory_percent": drawn("used")}
        for _ in range(sizes[1])
    ]
    if kind.get("idle gpu"):
        gpus[special["idle"]]["utilisation_percent"] = int(rng.integers(0, 6))
    if kind.get("lagging gpu"):
        gpus[special["idle"]]["utilisation_percent"] = int(rng.integers(83, 87))
    htop = [_core(rng, drawn("cores"), iowait=drawn("iowait")) for _ in range(sizes[0])]
    if kind.get("full core"):
        low, high = (90, 90) if kind.get("exactly") else (93, 98)
        htop[special["full"]] = _core(rng, int(rng.integers(low, high + 1)), iowait=0)
    permille = {"disk": 10 * burst.get("disk", drawn("disk")), "network": 10 * drawn("network")}
    if kind.get("almost"):
        permille = {"disk": 899, "network": 899}
    return {
        "nvidia-smi": gpus,
        "htop": htop,
        "memtop": _memory(rng, kind, used=drawn("used")),
        "iotop": {"byte_per_s": permille["disk"] * machine["disk_byte_per_s"] // 1000},
        "nettop": {"byte_per_s": permille["network"] * machine["link_bit_per_s"] // 8000},
    }


def _core(rng: Any, busy: int, *, iowait: int) -> dict[str, int]:
    system = int(rng.integers(1, 9))
    return {"user_percent": busy - system, "system_percent": system, "iowait_percent": iowait}


def _memory(rng: Any, kind: dict[str, Any], *, used: int) -> dict[str, int]:
    swap = 1_000_000 if kind.get("exactly") else int(rng.integers(20, 90)) * 1_000_000
    still = bool(kind.get("stale swap"))
    return {
        "used_percent": used,
        "swap_used_percent": int(rng.integers(25, 60)) if still or kind.get("swap") else int(rng.integers(0, 4)),
        "swap_byte_per_s": swap if kind.get("swap") else int(rng.integers(0, 900)) * 1000 * still,
    }


def _tools(rng: Any) -> list[dict[str, Any]]:
    """Tools in any order, each with its hours; one that shows all, so that there is always an answer."""
    hours = [int(h) for h in rng.permutation([1, 2, 3, 5, 8, 13, 21])]
    named = zip(_TOOLS.items(), hours, strict=True)
    tools = [{"name": name, "hours": one, "shows": list(shows)} for (name, shows), one in named]
    tools = [tools[int(i)] for i in rng.permutation(len(tools))[:4]]
    tools.append({**_EVERY_ONE, "shows": ["memory", "gpu", "disk", "network", "cpu", "one core", "none"]})
    return [tools[int(i)] for i in rng.permutation(len(tools))]
