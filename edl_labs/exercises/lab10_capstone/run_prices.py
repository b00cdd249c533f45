"""cost: the hours of a training run on so many GPUs, whether it fits, and the cheapest way to rent it."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab10_capstone.cost_slips import SLIPS
from edl_labs.exercises.slip_digests import digest
from edl_labs.units import flop_rate

_PARTS = ("gpus", "rented", "hours", "money")


@exercise("cost")
class Cost(Exercise):
    """Hours, memory and money of a run, and the cheapest number of GPUs that fits and is in time.

    `hours(run, chip, gpus)`, `fits(run, chip, gpus)` and `cheapest(run, chip)`, a dict or None.
    """

    answers = "all"

    skip_type_check = True

    def probe(self, student: Any, given: Any) -> Any:
        def asked() -> tuple[dict[str, Any], dict[str, Any]]:
            return {**given["run"]}, {**given["chip"]}

        return {
            "hours": [student.hours(*asked(), gpus) for gpus in given["gpus"]],
            "fits": [student.fits(*asked(), gpus) for gpus in given["gpus"]],
            "cheapest": student.cheapest(*asked()),
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _require_form(got)
        for gpus, said, right in zip(case["gpus"], got["hours"], want["hours"], strict=True):
            if not close(said, right):
                raise _hours_symptom(case, gpus, said, right)
        for gpus, fits, right in zip(case["gpus"], got["fits"], want["fits"], strict=True):
            if fits != right:
                raise _memory_symptom(case, gpus, fits=fits)
        _judge_cheapest(case, got["cheapest"], want["cheapest"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Another rule for what fits, or for how many GPUs are taken, where it gives the answers to all cases."""
        for case, one in zip(cases, got, strict=True):
            _require_form(one)
            if one["cheapest"] is not None and not (_is_paid(case, one["cheapest"]) and _lasts(case, one["cheapest"])):
                return None
        if all(one["hours"] and close(one["hours"][0], two["hours"][0]) for one, two in zip(got, want, strict=True)):
            for key, (what, then) in SLIPS.items():
                if all(_slipped(case, one, key) for case, one in zip(cases, got, strict=True)):
                    why = "in every case the answers are what that rule gives"
                    return Wrong(what, why=why, next=then)
        return None

    def format_answer(self, case: Any, got: Any) -> str:
        """The cheapest way, and the hours."""
        hours = ", ".join(_short(one) for one in got["hours"])
        best = got["cheapest"]
        told = ", ".join(f"{key} {_short(best[key])}" for key in _PARTS) if isinstance(best, dict) else str(best)
        return f"hours {hours}; fits {', '.join(map(str, got['fits']))}; cheapest: {told}"

    def format_case(self, case: Any) -> str:
        """The run and the chip."""
        run, chip = case["run"], case["chip"]
        return (
            f"{run['parameters']:.3g} parameters, {run['tokens']:.3g} tokens, a batch of {run['batch']}, "
            f"{'with' if run['recompute'] else 'without'} recomputation; {run['state_bytes']} B of state a parameter, "
            f"{run['activation_bytes'] / 1e9:.3g} GB of activations; at most {run['deadline_h']:g} h; "
            f"{flop_rate(chip['flop_per_s'])} of which {chip['achieved']:.0%}, {chip['memory_bytes'] / 1e9:.3g} GB, "
            f"{chip['node_gpus']} in a node, at most {chip['most_gpus']}, {chip['price_per_gpu_h']:g} an hour, "
            f"{chip['setup_h']:g} h to set up; hours and fits for {', '.join(map(str, case['gpus']))} GPUs"
        )


def _require_form(got: Any) -> None:
    for one in got["hours"]:
        if type(one) not in (int, float) or not math.isfinite(one):
            raise Wrong("hours are not a number", why=str(one)[:60], next="return hours, as a float")
    for one in got["fits"]:
        if type(one) is not bool:
            raise Wrong("fits is neither True nor False", why=str(one)[:60], next="return what a comparison gives")
    best = got["cheapest"]
    if best is not None and (not isinstance(best, dict) or any(_bad(best.get(key)) for key in _PARTS)):
        then = "return {'gpus': …, 'rented': …, 'hours': …, 'money': …}, or None where nothing is in time"
        raise Wrong("the cheapest way is not a dict of four numbers", why=str(best)[:60], next=then)


def _judge_cheapest(case: Any, got: Any, want: Any) -> None:
    if got is None and want is None:
        return
    if got is None or want is None:
        if got is None:
            then = "go through every number of GPUs that divides the batch"
            raise Wrong("there is a way that fits and is in time", why="None came back", next=then)
        why = f"{got['gpus']:g} GPUs came back, and no number up to chip['most_gpus'] both fits and is in time"
        raise Wrong("no number of GPUs will do here", why=why, next="return None in such a case")
    _judge_number(case, got, want)


def _bad(value: Any) -> bool:
    return type(value) not in (int, float) or not math.isfinite(value)


def _hours_symptom(case: Any, gpus: int, said: float, right: float) -> Wrong:
    run, chip = case["run"], case["chip"]
    why = f"{gpus} GPUs: {_short(said)} h came back, {_short(right)} h is right"
    times = 4 / 3 if run["recompute"] else 1.0
    train = right - chip["setup_h"]
    slips: tuple[tuple[str, float, str], ...] = (
        ("the hours to set up are left out", train, "a run begins when it is rented"),
        (
            "the peak is taken for what is achieved",
            chip["setup_h"] + train * chip["achieved"],
            "chip['achieved'] of it",
        ),
        ("the achieved share divides the rate", chip["setup_h"] + train * chip["achieved"] ** 2, "less than the peak"),
        ("hours are seconds", chip["setup_h"] + 3600 * train, "an hour has 3600 s"),
        ("the set-up is shared by all GPUs", chip["setup_h"] / gpus + train, "all wait for it, each as long"),
        ("the work of one GPU is not shared", chip["setup_h"] + train * gpus, "each does 1 / gpus of it"),
        ("only the forward pass is counted", chip["setup_h"] + train / (3 * times), "backward is twice as much"),
    )
    for what, value, then in slips:
        if close(said, value):
            return Wrong(what, why=why, next=then)
    if run["recompute"]:
        for what, factor in (("the recomputed forward pass is left out", 6 / 8), ("all is recomputed", 12 / 8)):
            if close(said, chip["setup_h"] + train * factor):
                then = "recomputation runs the forward pass once more, and nothing else"
                return Wrong(what, why=why, next=then)
    elif close(said, chip["setup_h"] + train * 8 / 6):
        return Wrong("a forward pass too many: nothing is recomputed", why=why, next="look at run['recompute']")
    then = "6 FLOP per parameter and token, 8 with recomputation, divided by what all GPUs achieve; add the set-up"
    return Wrong("the time of the run is wrong", why=why, next=then)


def _memory_symptom(case: Any, gpus: int, *, fits: bool) -> Wrong:
    run = case["run"]
    why = f"{gpus} GPUs, each with {run['activation_bytes'] / 1e9:.3g} GB of activations and its share of the state"
    if fits:
        return Wrong("a run that does not fit is said to fit", why=why, next="what does one GPU hold, all in all?")
    return Wrong("a run that fits is said not to", why=why, next="the state is shared by all GPUs that train")


def _judge_number(case: Any, got: Any, want: Any) -> None:
    chip = case["chip"]
    nodes = -(-int(got["gpus"]) // chip["node_gpus"]) * chip["node_gpus"]
    why = f"{got['gpus']:g} GPUs came back, {want['gpus']} are cheapest"
    if case["run"]["batch"] % max(1, int(got["gpus"])):
        then = "each GPU gets as many samples: only divisors of run['batch'] will do"
        raise Wrong("the batch cannot be shared by so many GPUs", why=why, next=then)
    _judge_limits(case, got)
    if not close(got["rented"], nodes):
        why = f"{got['gpus']:g} GPUs train, {_short(got['rented'])} are rented; a node has {chip['node_gpus']}"
        raise Wrong("nodes are rented as a whole", why=why, next="round up to whole nodes")
    if not close(got["money"], got["rented"] * got["hours"] * chip["price_per_gpu_h"]):
        raise _money_symptom(case, got)
    if got["gpus"] != want["gpus"]:
        why = f"{got['gpus']:g} GPUs came back, {want['gpus']} are cheapest"
        then = "work out the money of every number that will do, and take the least"
        raise Wrong("another number of GPUs is cheaper", why=why, next=then)


def _judge_limits(case: Any, got: Any) -> None:
    """Hours, memory and deadline of the number of GPUs that came back."""
    known = {gpus: (hours, fits) for gpus, hours, fits in case["ways"]}
    if got["gpus"] not in known:
        why = f"{got['gpus']:g} GPUs came back, of {case['chip']['most_gpus']}"
        raise Wrong("there are not so many GPUs", why=why, next="from 1 to chip['most_gpus']")
    hours, fits = known[got["gpus"]]
    if not fits:
        why = f"{got['gpus']:g} GPUs came back; each would hold more than {case['chip']['memory_bytes'] / 1e9:.3g} GB"
        then = "ask `fits` for the GPUs that train: rented GPUs that are idle hold nothing"
        raise Wrong("the cheapest way does not fit", why=why, next=then)
    if not close(got["hours"], hours):
        why = f"{got['gpus']:g} GPUs: {_short(got['hours'])} h came back, {_short(hours)} h is right"
        then = "those that `hours` gives for the GPUs that train, set-up included"
        raise Wrong("the hours of the cheapest way are wrong", why=why, next=then)
    if hours > case["run"]["deadline_h"]:
        why = f"{got['gpus']:g} GPUs need {_short(hours)} h, the deadline is {_short(case['run']['deadline_h'])} h"
        then = "ask `hours` for the GPUs that train, not for those that are rented"
        raise Wrong("the cheapest way is too late", why=why, next=then)


def _money_symptom(case: Any, got: Any) -> Wrong:
    """Money that is not what the answer's own GPUs and hours cost."""
    chip, said = case["chip"], got["money"]
    right = got["rented"] * got["hours"] * chip["price_per_gpu_h"]
    why = f"{_short(said)} came back; {got['rented']:g} GPUs for {_short(got['hours'])} h cost {_short(right)}"
    train = got["hours"] - chip["setup_h"]
    slips = (
        ("idle GPUs are not free", got["gpus"] * got["hours"], "all that is rented is paid"),
        ("the set-up is paid, too", got["rented"] * train, "GPUs are rented from the first hour on"),
        ("only one GPU is paid for", got["hours"], "each rented GPU has its price"),
        ("the price is that of one GPU", got["rented"] / chip["node_gpus"] * got["hours"], "not that of a node"),
        ("only one node is paid for", chip["node_gpus"] * got["hours"], "all rented nodes are paid"),
    )
    for what, gpu_hours, then in slips:
        if close(said, gpu_hours * chip["price_per_gpu_h"]):
            return Wrong(what, why=why, next=then)
    return Wrong("the cost of the run is wrong", why=why, next="rented GPUs, times hours, times the price of each")


def _is_paid(case: Any, best: Any) -> bool:
    """Whether whole nodes are rented, and all of them are paid all of the time."""
    node = case["chip"]["node_gpus"]
    rented = -(-int(best["gpus"]) // node) * node
    price = case["chip"]["price_per_gpu_h"]
    return bool(best["rented"] == rented and close(best["money"], rented * best["hours"] * price))


def _lasts(case: Any, best: Any) -> bool:
    """Whether its hours are those of its GPUs."""
    return any(gpus == best["gpus"] and close(best["hours"], hours) for gpus, hours, _ in case["ways"])


def _slipped(case: Any, got: Any, key: str) -> bool:
    best = got["cheapest"]
    return bool(digest([None if best is None else best["gpus"], *got["fits"]]) == case["slips"][key])


def _short(value: Any) -> str:
    return f"{value:.6g}" if type(value) in (int, float) else str(value)[:40]
