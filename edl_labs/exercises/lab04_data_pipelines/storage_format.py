"""storage_format: what a format costs under an access pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import seconds


@exercise("storage_format")
class StorageFormat(Exercise):
    """The cost of a storage format under an access pattern, and the format that it picks.

    `student.format_cost_s(form, access, disk)` prices a format; `student.pick_format(…)` names the cheapest.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        access, disk = given["access"], given["disk"]
        costs = [student.format_cost_s(form, access, disk) for form in given["forms"]]
        return {"cost_s": costs, "pick": student.pick_format(given["forms"], access, disk)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        names = [form["name"] for form in case["forms"]]
        if len(got["cost_s"]) != len(names):
            raise Wrong(
                "each format must have one cost",
                why=f"got {len(got['cost_s'])} costs for {len(names)} formats",
                next="return one number of seconds",
            )
        for form, mine, right in zip(case["forms"], got["cost_s"], want["cost_s"], strict=True):
            if not close(mine, right, rtol=1e-6):
                raise _wrong_cost(case, form, mine, right)
        if got["pick"] not in names:
            raise Wrong(
                f"{got['pick'][:40]!r} is not one of the formats",
                why=f"the formats are {', '.join(names)}",
                next="return one of these names",
            )
        # Two formats may cost the same: either is right.
        picked = want["cost_s"][names.index(got["pick"])]
        if not close(picked, min(want["cost_s"]), rtol=1e-6):
            raise Wrong(
                f"{got['pick']} is not the cheapest format",
                why=f"it costs {seconds(picked)}, but another format costs only {seconds(min(want['cost_s']))}",
                next="compare the costs that format_cost_s returns for each format, on this disk and for this access",
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The one slip that gives every cost of every case; a single cost may fit several."""
        asked = [
            (form, case["access"], case["disk"], mine, right)
            for case, answer, good in zip(cases, got, want, strict=True)
            for form, mine, right in zip(case["forms"], answer["cost_s"], good["cost_s"], strict=True)
        ]
        if all(close(mine, right) for *_, mine, right in asked):
            return None
        for (what, then), slip in _SLIPS.items():
            if all(close(mine, slip(form, access, disk)) for form, access, disk, mine, _ in asked):
                form, mine, right = next((f, m, r) for f, _, _, m, r in asked if not close(m, r))
                return Wrong(what, why=_both(form, mine, right), next=then)
        return None

    def format_case(self, case: Any) -> str:
        rows = [f"  {form}" for form in case["forms"]]
        return "\n".join([f"access = {case['access']}", f"disk = {case['disk']}", "forms:", *rows])


def _told(mine: Any, right: float, form: Any, access: Any, disk: Any) -> str:
    """Which single omission makes the cost what it is; empty when none does."""
    read = access["samples"] if access["order"] == "sequential" else access["reads"]
    scattered = access["order"] == "random"
    share = access["column_share"] if form["columnar"] else 1.0
    exact = form["sample_bytes"] * share
    rounded = max(exact, form["unit_bytes"]) if scattered else exact
    jumps = read if scattered else 1

    def total(*, each: float = rounded, seeks: int = jumps, opens: int = form["opens_per_sample"], fits: bool) -> float:
        cpu_s = read * (opens * disk["open_s"] + form["parse_s"])
        disk_s = seeks * disk["seek_s"] + read * each / disk["byte_per_s"]
        return access["epochs"] * cpu_s + (1 if fits else access["epochs"]) * disk_s

    stored = access["samples"] * form["sample_bytes"]
    fits = stored <= disk["cache_bytes"]
    uncached = "your code assumes that a data set exactly as large as the page cache does not fit into it"
    uncached = uncached if stored == disk["cache_bytes"] else "your code leaves out the page cache"
    unit_always = max(exact, form["unit_bytes"])
    omissions = {
        uncached: total(fits=False),
        "your code assumes that no epoch after the first needs the disk": total(fits=True),
        "your code leaves out the smallest unit that a random read fetches": total(each=exact, fits=fits),
        "your code applies the smallest unit of a random read to sequential reads, too": total(
            each=unit_always, fits=fits
        ),
        "your cost includes columns that are not read": total(
            each=max(form["sample_bytes"], form["unit_bytes"]) if scattered else form["sample_bytes"], fits=fits
        ),
        "your code skips columns in a format that is not columnar": total(
            each=max(form["sample_bytes"] * access["column_share"], form["unit_bytes"])
            if scattered
            else form["sample_bytes"] * access["column_share"],
            fits=fits,
        ),
        "your code leaves out the time for opening files": total(opens=0, fits=fits),
        "your code counts a seek for every sample of a sequential read": total(seeks=read, fits=fits),
        "your code counts only one seek per epoch for a random read": total(seeks=1, fits=fits),
    }
    for told, value in omissions.items():
        if close(mine, value, rtol=1e-6) and not close(value, right, rtol=1e-6):
            return told
    return ""


def _both(form: Any, mine: Any, right: float) -> str:
    digits = 4 if f"{right:.4g}" != f"{mine:.4g}" else 8
    return f"for {form['name']}: expected {right:.{digits}g} s, got {mine:.{digits}g} s"


def _wrong_cost(case: Any, form: Any, mine: Any, right: float) -> Wrong:
    why = _both(form, mine, right)
    told = _told(mine, right, form, case["access"], case["disk"])
    if told:
        return Wrong(told, why=why, next="read the table and the rules below it again")
    return Wrong(
        "your cost of a format is wrong", why=why, next="work out the disk's time and the processor's time per epoch"
    )


_Slip = Callable[[Any, Any, Any], float]


def _reads(access: Any) -> int:
    return int(access["samples"] if access["order"] == "sequential" else access["reads"])


def _share(form: Any, access: Any) -> float:
    return float(access["column_share"]) if form["columnar"] else 1.0


def _fetched(form: Any, access: Any) -> float:
    exact = form["sample_bytes"] * _share(form, access)
    return max(exact, form["unit_bytes"]) if access["order"] == "random" else float(exact)


def _in_units(form: Any, access: Any) -> float:
    exact = form["sample_bytes"] * _share(form, access)
    whole = -(-exact // form["unit_bytes"]) * form["unit_bytes"]
    return float(whole if access["order"] == "random" else exact)


def _share_of_units(form: Any, access: Any) -> float:
    least = max(form["sample_bytes"], form["unit_bytes"]) if access["order"] == "random" else form["sample_bytes"]
    return float(least * _share(form, access))


def _stored(form: Any, access: Any) -> float:
    return float(access["samples"] * form["sample_bytes"])


def _slip(
    *,
    reads: Callable[[Any], int] = _reads,
    fetched: Callable[[Any, Any], float] = _fetched,
    cached: Callable[[Any, Any], float] = _stored,
    opened: Callable[[Any, Any], float] = lambda form, disk: (
        form["opens_per_sample"] * disk["open_s"] + form["parse_s"]
    ),
    total: Callable[[float, float, int, int], float] = lambda io_s, cpu_s, cold, all_: cold * io_s + all_ * cpu_s,
) -> _Slip:
    """The cost by how many samples are read, the bytes of each, what is to fit into the cache, and what adds up."""

    def cost_s(form: Any, access: Any, disk: Any) -> float:
        count, epochs = reads(access), access["epochs"]
        seeks = count if access["order"] == "random" else 1
        io_s = seeks * disk["seek_s"] + count * fetched(form, access) / disk["byte_per_s"]
        cold = 1 if cached(form, access) <= disk["cache_bytes"] else epochs
        return total(io_s, count * opened(form, disk), cold, epochs)

    return cost_s


def _one_seek_in_all(form: Any, access: Any, disk: Any) -> float:
    right = _slip()(form, access, disk)
    is_cold = access["order"] == "sequential" and _stored(form, access) > disk["cache_bytes"]
    return right - (access["epochs"] - 1) * disk["seek_s"] * is_cold


_CACHE = "compare the whole data set, as it is stored, with the cache: all samples, with all of their columns"
_UNIT = "fetch at least unit_bytes for a random read: round a smaller read up to that, and leave a larger one as it is"
_SLIPS: dict[tuple[str, str], _Slip] = {
    ("your code compares only the columns that are read with the page cache", _CACHE): _slip(
        cached=lambda form, access: _stored(form, access) * _share(form, access)
    ),
    ("your code compares only the samples that an epoch reads with the page cache", _CACHE): _slip(
        cached=lambda form, access: _reads(access) * form["sample_bytes"]
    ),
    ("your code compares only the bytes that an epoch fetches with the page cache", _CACHE): _slip(
        cached=lambda form, access: _reads(access) * _fetched(form, access)
    ),
    (
        "your code counts opening and parsing only once for a data set that is cached",
        "count opening and parsing in every epoch: the page cache saves only the disk's time",
    ): _slip(total=lambda io_s, cpu_s, cold, all_: cold * (io_s + cpu_s)),
    (
        "your code counts only one seek for all epochs of a sequential read",
        "count a seek at the beginning of every epoch that reads from the disk",
    ): _one_seek_in_all,
    (
        "your code applies the share of columns after it rounds up to a unit, so it fetches less than a unit",
        _UNIT,
    ): _slip(fetched=_share_of_units),
    ("your code rounds reads up to whole units", _UNIT): _slip(fetched=_in_units),
    (
        "your code assumes that disk and processor work at the same time",
        "add up their times: here they do not overlap",
    ): _slip(total=lambda io_s, cpu_s, cold, all_: max(cold * io_s, all_ * cpu_s)),
    (
        "your code counts parsing once per opened file instead of once per sample",
        "count one parse for each sample that is read, however many files are opened for it",
    ): _slip(opened=lambda form, disk: form["opens_per_sample"] * (disk["open_s"] + form["parse_s"])),
    (
        "your code reads `reads` samples in a sequential epoch",
        "use all `samples` in a sequential epoch: `reads` is for random order",
    ): _slip(reads=lambda access: access["reads"]),
    (
        "your code reads all samples in a random epoch",
        "use `reads` in a random epoch: all `samples` are for sequential order",
    ): _slip(reads=lambda access: access["samples"]),
}
