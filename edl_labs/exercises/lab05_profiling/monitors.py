"""read_the_monitors: which resource sets the pace, from what monitors show second by second, and what to try next."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_rate, si

RESOURCES = ("memory", "gpu", "disk", "network", "cpu", "one core", "none")
FULL_PERCENT, SWAPPING_BYTE_PER_S = 90, 1_000_000  # as the lab's text has them


@exercise("read_the_monitors")
class ReadTheMonitors(Exercise):
    """The resource that sets the pace, and the cheapest tool that says more about it.

    `read_monitors(snapshots, machine, tools)` gives both as words, from what five monitors showed in some seconds.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        snapshots = [
            {
                "nvidia-smi": [dict(gpu) for gpu in one["nvidia-smi"]],
                "htop": [dict(core) for core in one["htop"]],
                **{tool: dict(one[tool]) for tool in ("memtop", "iotop", "nettop")},
            }
            for one in given["snapshots"]
        ]
        tools = [{**tool, "shows": list(tool["shows"])} for tool in given["tools"]]
        return student.read_monitors(snapshots, dict(given["machine"]), tools)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != 2:
            raise Wrong(
                "your function must return two words",
                why=f"the number of returned values is {len(got)}",
                next="return the resource first, then the tool",
            )
        if got[0] not in RESOURCES:
            raise Wrong(
                f"{got[0][:30]!r} is not a resource",
                why=f"the resources are {', '.join(RESOURCES)}",
                next="return one of these words as the first value",
            )
        if got[0] != want[0]:
            raise _resource_symptom(case, said=got[0], right=want[0])
        if got[1] != want[1]:
            raise _tool_symptom(case, said=got[1], resource=want[0])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What of nvidia-smi all answers follow: another column, the mean of the GPUs or the busiest one."""
        rows = [row for row in zip(cases, got, want, strict=True) if row[2][0] != "memory"]
        by_memory = [(mine[0] == "gpu") == _is_full(case, "memory_percent") for case, mine, _ in rows]
        if all(by_memory) and any(mine[0] != right[0] for _, mine, right in rows):
            case = next(case for case, mine, right in rows if mine[0] != right[0])
            load = ", ".join(f"{share:.0f}" for share in _means(case)["gpus"])
            why = f"in every case your answer follows memory_percent; the load of the GPUs here is {load} %"
            then = "use utilisation_percent, which says how busy a GPU is; memory_percent says how full its memory is"
            return Wrong("your answers use the memory of the GPUs as their load", why=why, next=then)
        return _gpus_as_one(rows)

    def format_case(self, case: Any) -> str:
        seen = _means(case)
        disk, link = case["machine"]["disk_byte_per_s"], case["machine"]["link_bit_per_s"]
        gpus, cores = (", ".join(f"{share:.0f}" for share in seen[name]) for name in ("gpus", "cores"))
        tools = [f"{tool['name']} ({tool['hours']} h): {', '.join(tool['shows'])}" for tool in case["tools"]]
        return "\n".join(
            [
                f"means over {len(case['snapshots'])} s; disk {byte_rate(disk)}, link {si(link, 'bit/s')}",
                f"  nvidia-smi: {gpus} %",
                f"  htop:       user and system {cores} %, iowait {seen['iowait']:.0f} %",
                f"  memtop:     used {seen['used']:.0f} %, swap used {seen['swap used']:.0f} %, "
                f"{byte_rate(seen['swap'])}",
                f"  iotop:      {byte_rate(seen['disk'] / 100 * disk)}",
                f"  nettop:     {byte_rate(seen['network'] / 800 * link)}",
                *(f"  {tool}" for tool in tools),
            ]
        )


def _means(case: Any) -> dict[str, Any]:
    """What the monitors showed on average: per cent, and bytes a second of swapping."""
    snapshots, machine = case["snapshots"], case["machine"]

    def mean(of: Any) -> float:
        return float(sum(map(of, snapshots)) / len(snapshots))

    first = snapshots[0]
    return {
        "gpus": [
            mean(lambda s, i=i: s["nvidia-smi"][i]["utilisation_percent"]) for i in range(len(first["nvidia-smi"]))
        ],
        "cores": [mean(lambda s, i=i: _busy(s["htop"][i])) for i in range(len(first["htop"]))],
        "iowait": mean(lambda s: sum(c["iowait_percent"] for c in s["htop"]) / len(s["htop"])),
        "used": mean(lambda s: s["memtop"]["used_percent"]),
        "swap used": mean(lambda s: s["memtop"]["swap_used_percent"]),
        "swap": mean(lambda s: s["memtop"]["swap_byte_per_s"]),
        "disk": 100 * mean(lambda s: s["iotop"]["byte_per_s"]) / machine["disk_byte_per_s"],
        "network": 800 * mean(lambda s: s["nettop"]["byte_per_s"]) / machine["link_bit_per_s"],
    }


def _is_full(case: Any, column: str) -> bool:
    gpus = zip(*(one["nvidia-smi"] for one in case["snapshots"]), strict=True)
    return min(sum(one[column] for one in gpu) / len(gpu) for gpu in gpus) >= FULL_PERCENT


def _mean(shares: list[float]) -> float:
    return sum(shares) / len(shares)


def _gpus_as_one(rows: list[tuple[Any, Any, Any]]) -> Wrong | None:
    """One figure for all GPUs, by which all answers say that they are full, where no other one fits."""
    wrong = [case for case, mine, right in rows if mine[0] != right[0]]
    follows = {
        figure: all((mine[0] == "gpu") == (figure(_means(case)["gpus"]) >= FULL_PERCENT) for case, mine, _ in rows)
        for figure in (_mean, max)
    }
    if not wrong or follows[_mean] == follows[max]:
        return None
    return _not_all_full(_means(wrong[0])["gpus"], _MEAN_OF_ALL if follows[_mean] else _ONE_BUSY)


def _not_all_full(gpus: list[float], what: str) -> Wrong:
    shares = ", ".join(f"{share:.3g} %" for share in gpus)
    return Wrong(
        what,
        why=f"on average over time, the GPUs show {shares}: not every GPU reaches {FULL_PERCENT} %",
        next="look at the utilisation of each GPU: are all of them busy?",
    )


_MEAN_OF_ALL = "your answer uses the mean of all GPUs, which hides a GPU that is not busy"
_ONE_BUSY = "your answer treats one busy GPU as if all GPUs were busy"


def _busy(core: Any) -> int:
    return int(core["user_percent"] + core["system_percent"])


def _resource_symptom(case: Any, *, said: str, right: str) -> Wrong:
    seen = _means(case)
    cpu = sum(seen["cores"]) / len(seen["cores"])
    if right == "memory":
        return Wrong(
            "your answer overlooks memory that is swapped in and out",
            why=f"the swap traffic is {byte_rate(seen['swap'])}, and it explains what the disk and the cores do",
            next="check for swapping before anything else",
        )
    if said == "memory":
        return Wrong(
            "your answer treats memory in use as a shortage of memory",
            why="files that were read stay cached in free memory, and unused pages stay in the swap: neither costs "
            "time",
            next="call memory the limit only if there is, on average, traffic to and from the swap",
        )
    if said == "gpu" and min(seen["gpus"]) < FULL_PERCENT <= max(seen["gpus"]):
        hides = _mean(seen["gpus"]) >= FULL_PERCENT  # so that the mean of all GPUs may have been taken
        return _not_all_full(seen["gpus"], "your answer is 'gpu', but a GPU is not busy" if hides else _ONE_BUSY)
    if said == "cpu" and cpu < FULL_PERCENT <= cpu + seen["iowait"]:
        return Wrong(
            "your answer counts waiting for the disk as processor work",
            why=f"on average, user and system are {cpu:.0f} % and iowait is {seen['iowait']:.0f} %: a waiting core is "
            "idle",
            next="leave iowait out of the time in which a core is busy",
        )
    return _order_symptom(case, seen, said=said, right=right)


def _order_symptom(case: Any, seen: dict[str, Any], *, said: str, right: str) -> Wrong:
    """A resource that was overlooked, or looked at too early or in a single moment."""
    if right == "network" and said == "none":
        return Wrong(
            "your answer overlooks that the network is full",
            why=f"nettop shows {seen['network']:.0f} % of the link once both are in the same unit",
            next="convert the units: the link is in bits per second, nettop in bytes per second",
        )
    if right == "gpu":
        return Wrong(
            "the GPUs are busy all the time, but your answer is something else",
            why="if the device never waits, another full resource does not set the pace",
            next="check for swapping first, then the GPUs, and only then the resources that feed them",
        )
    user = [
        sum(one["htop"][core]["user_percent"] for one in case["snapshots"]) / len(case["snapshots"])
        for core in range(len(seen["cores"]))
    ]
    if right == "one core" and said == "none" and max(user) < FULL_PERCENT:
        return Wrong(
            "your answer overlooks the time that a core spends in the system",
            why=f"one core is at {max(seen['cores']):.0f} % with user and system time together, but no core reaches "
            f"{FULL_PERCENT} % with user time only",
            next="add up user and system for each core, since both keep it busy, then look at each core separately",
        )
    if right == "one core" and said == "none":
        return Wrong(
            "your answer overlooks one core at its limit",
            why=f"the mean over {len(seen['cores'])} cores hides it: a single Python thread can fill only one core",
            next="if nothing else is full, look at each core separately",
        )
    cpu = sum(seen["cores"]) / len(seen["cores"])
    means = {"gpu": min(seen["gpus"]), "disk": seen["disk"], "network": seen["network"], "cpu": cpu}
    if means.get(said, max(seen["cores"])) < FULL_PERCENT and said != "none":
        return Wrong(
            "your answer seems to rely on a single moment",
            why=f"{said} is not full on average over the {len(case['snapshots'])} s",
            next="take the mean over all snapshots before you compare it with a bound",
        )
    if said == "one core":
        return Wrong(
            "your answer is 'one core', but another resource is full",
            why=f"{right} is full too, and a single core counts only if nothing else is full",
            next="look at individual cores last",
        )
    return Wrong(
        "your answer is not the fullest resource"
        if said != "none"
        else "your answer overlooks a resource that is full",
        why=f"the means are: disk {seen['disk']:.0f} %, network {seen['network']:.0f} %, all cores {cpu:.0f} %",
        next=f"compare the means with {FULL_PERCENT} %; if several resources are full, choose the fullest",
    )


def _tool_symptom(case: Any, *, said: str, resource: str) -> Wrong:
    named = {tool["name"]: tool for tool in case["tools"]}
    if said not in named:
        what = f"{said[:30]!r} is not one of the tools"
        return Wrong(what, why=f"the tools are {', '.join(named)}", next="return a tool's name as the second value")
    if resource not in named[said]["shows"]:
        return Wrong(
            "your tool does not show the resource in question",
            why=f"{said} shows {', '.join(named[said]['shows'])}, but not {resource!r}, which is the answer here",
            next="choose among the tools whose list in the case contains this answer",
        )
    return Wrong(
        "your tool is not the cheapest one that shows this resource",
        why=f"{said!r} takes {named[said]['hours']} h",
        next="of the tools that show the resource, choose the one with the fewest hours",
    )
