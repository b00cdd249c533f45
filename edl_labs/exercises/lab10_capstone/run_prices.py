"""cost: the hours of a training run on so many GPUs, whether it fits, and the cheapest way to rent it."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab10_capstone.cost_slips import SLIPS
from edl_labs.exercises.slip_digests import digest
from edl_labs.units import counted, flop_rate

_IN_ALL_CASES = "this mistake gives exactly your answers, in all cases"
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
                    return Wrong(what, why=_IN_ALL_CASES, next=then)
            if all(_is_dearest(case, one["cheapest"]) for case, one in zip(cases, got, strict=True)):
                then = "take the lowest cost: when your code compares two costs, which of them does it keep?"
                return Wrong("your function takes the highest cost, not the lowest", why=_IN_ALL_CASES, next=then)
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
            f"{'with' if run['recompute'] else 'without'} recomputation; {run['state_bytes']} B of state per "
            f"parameter, {run['activation_bytes'] / 1e9:.3g} GB of activations; a deadline of {run['deadline_h']:g} h; "
            f"each GPU: {flop_rate(chip['flop_per_s'])}, {chip['achieved']:.0%} achieved, "
            f"{chip['memory_bytes'] / 1e9:.3g} GB, {chip['price_per_gpu_h']:g} per hour; "
            f"{chip['node_gpus']} in a node, at most {chip['most_gpus']}; {chip['setup_h']:g} h of set-up; "
            f"hours and fits for {', '.join(map(str, case['gpus']))} GPUs"
        )


def _require_form(got: Any) -> None:
    for one in got["hours"]:
        if type(one) not in (int, float) or not math.isfinite(one):
            raise Wrong(
                "hours() did not return a number", why=f"got {str(one)[:60]}", next="return the hours as a float"
            )
    for one in got["fits"]:
        if type(one) is not bool:
            why = f"got {str(one)[:60]}"
            raise Wrong("fits() returned neither True nor False", why=why, next="return the result of a comparison")
    best = got["cheapest"]
    if best is not None and (not isinstance(best, dict) or any(_bad(best.get(key)) for key in _PARTS)):
        then = (
            "return {'gpus': …, 'rented': …, 'hours': …, 'money': …}, or None if no number of GPUs meets the conditions"
        )
        raise Wrong("cheapest() did not return a dict of four numbers", why=f"got {str(best)[:60]}", next=then)


def _judge_cheapest(case: Any, got: Any, want: Any) -> None:
    if got is None and want is None:
        return
    if got is None or want is None:
        if got is None:
            then = "try every number of GPUs that divides the batch"
            why = "at least one number of GPUs fits and meets the deadline"
            raise Wrong("cheapest() returned None, but there is an answer", why=why, next=then)
        why = f"got {got['gpus']:g} GPUs, but no number up to chip['most_gpus'] both fits and meets the deadline"
        raise Wrong("cheapest() returned an answer, but there is none", why=why, next="return None in this case")
    _judge_number(case, got, want)


def _bad(value: Any) -> bool:
    return type(value) not in (int, float) or not math.isfinite(value)


def _hours_symptom(case: Any, gpus: int, said: float, right: float) -> Wrong:
    run, chip = case["run"], case["chip"]
    why = f"{counted(gpus, 'GPU')}: got {_short(said)} h, expected {_short(right)} h"
    times = 4 / 3 if run["recompute"] else 1.0
    train = right - chip["setup_h"]
    slips: tuple[tuple[str, float, str], ...] = (
        (
            "hours() leaves out the set-up",
            train,
            "add the hours of the set-up: you rent the GPUs during the set-up, too",
        ),
        (
            "hours() uses the peak rate instead of the achieved rate",
            chip["setup_h"] + train * chip["achieved"],
            "multiply the peak rate by chip['achieved']",
        ),
        (
            "hours() divides the rate by the achieved share",
            chip["setup_h"] + train * chip["achieved"] ** 2,
            "multiply the peak rate by chip['achieved'] instead",
        ),
        (
            "in your result, the training time is in seconds, not in hours",
            chip["setup_h"] + 3600 * train,
            "divide by 3600",
        ),
        (
            "hours() divides the set-up among the GPUs",
            chip["setup_h"] / gpus + train,
            "add the set-up once: all GPUs wait equally long",
        ),
        (
            "hours() does not divide the work among the GPUs",
            chip["setup_h"] + train * gpus,
            "give each GPU 1 / gpus of the work",
        ),
        (
            "hours() counts only the forward pass",
            chip["setup_h"] + train / (3 * times),
            "add the backward pass, which needs twice as much work as the forward pass",
        ),
    )
    for what, value, then in slips:
        if close(said, value):
            return Wrong(what, why=why, next=then)
    if run["recompute"]:
        for what, factor in (
            ("hours() leaves out the recomputed forward pass", 6 / 8),
            ("hours() counts all passes twice", 12 / 8),
        ):
            if close(said, chip["setup_h"] + train * factor):
                then = "with recomputation, count only the forward pass once more"
                return Wrong(what, why=why, next=then)
    elif close(said, chip["setup_h"] + train * 8 / 6):
        return Wrong(
            "hours() counts a second forward pass without recomputation", why=why, next="check run['recompute']"
        )
    then = "divide 6 FLOP per parameter and token (8 with recomputation) by what all GPUs achieve; add the set-up"
    return Wrong("your time of the run is wrong", why=why, next=then)


def _memory_symptom(case: Any, gpus: int, *, fits: bool) -> Wrong:
    run = case["run"]
    why = (
        f"with {counted(gpus, 'GPU')}, each GPU holds {run['activation_bytes'] / 1e9:.3g} GB of activations and its "
        "share of the state"
    )
    if fits:
        return Wrong(
            "fits() returned True for a run that does not fit",
            why=why,
            next="what must the memory of one GPU hold in total?",
        )
    then = "divide the state among all GPUs that train"
    return Wrong("fits() returned False for a run that fits", why=why, next=then)


def _judge_number(case: Any, got: Any, want: Any) -> None:
    chip = case["chip"]
    nodes = -(-int(got["gpus"]) // chip["node_gpus"]) * chip["node_gpus"]
    why = f"got {got['gpus']:g} GPUs, but the cheapest number is {want['gpus']}"
    if case["run"]["batch"] % max(1, int(got["gpus"])):
        then = "take only divisors of run['batch'], so that every GPU gets the same number of samples"
        raise Wrong("your number of GPUs does not divide the batch", why=why, next=then)
    _judge_limits(case, got)
    if not close(got["rented"], nodes):
        why = f"for {got['gpus']:g} GPUs, got {_short(got['rented'])} rented GPUs; a node has {chip['node_gpus']}"
        if got["rented"] < got["gpus"]:
            raise Wrong("you rent fewer GPUs than you use", why=why, next="round the number of nodes up")
        if got["rented"] % chip["node_gpus"] == 0:
            then = "how many nodes do your GPUs fill? Add one node only if some of the GPUs are left over"
            raise Wrong("you rent more nodes than your GPUs need", why=why, next=then)
        raise Wrong("your rented GPUs are not whole nodes", why=why, next="round up to whole nodes")
    if not close(got["money"], got["rented"] * got["hours"] * chip["price_per_gpu_h"]):
        raise _money_symptom(case, got)
    if got["gpus"] != want["gpus"]:
        why = f"got {got['gpus']:g} GPUs, but the cheapest number is {want['gpus']}"
        then = "calculate the cost of every number that meets the conditions, and take the lowest"
        raise Wrong("a different number of GPUs is cheaper", why=why, next=then)


def _possible_costs(case: Any) -> dict[int, float]:
    """What each number of GPUs costs that meets all conditions."""
    run, chip = case["run"], case["chip"]
    costs = {}
    for gpus, hours, fits in case["ways"]:
        paid = -(-gpus // chip["node_gpus"]) * chip["node_gpus"]
        if fits and hours <= run["deadline_h"] and run["batch"] % gpus == 0 and paid <= chip["most_gpus"]:
            costs[gpus] = paid * hours * chip["price_per_gpu_h"]
    return costs


def _is_dearest(case: Any, best: Any) -> bool:
    """Whether no number of GPUs that meets the conditions costs more."""
    costs = _possible_costs(case)
    return best is None if not costs else best is not None and costs.get(best["gpus"]) == max(costs.values())


def _judge_limits(case: Any, got: Any) -> None:
    """Hours, memory and deadline of the number of GPUs that came back."""
    known = {gpus: (hours, fits) for gpus, hours, fits in case["ways"]}
    if got["gpus"] not in known:
        why = f"got {got['gpus']:g} GPUs; chip['most_gpus'] is {case['chip']['most_gpus']}"
        then = "choose a whole number from 1 to chip['most_gpus']"
        raise Wrong("your number of GPUs is not available", why=why, next=then)
    hours, fits = known[got["gpus"]]
    if not fits:
        why = f"with {got['gpus']:g} GPUs, each would hold more than {case['chip']['memory_bytes'] / 1e9:.3g} GB"
        then = "call fits() with the number of GPUs that train: idle GPUs hold no share of the state"
        raise Wrong("your cheapest number of GPUs does not fit", why=why, next=then)
    if not close(got["hours"], hours):
        why = f"{got['gpus']:g} GPUs: got {_short(got['hours'])} h, expected {_short(hours)} h"
        then = "call hours() with the number of GPUs that train; it includes the set-up"
        raise Wrong("the hours of your cheapest number of GPUs are wrong", why=why, next=then)
    if hours > case["run"]["deadline_h"]:
        why = f"{got['gpus']:g} GPUs take {_short(hours)} h; the deadline is {_short(case['run']['deadline_h'])} h"
        then = "call hours() with the number of GPUs that train, not with the number rented"
        raise Wrong("your cheapest number of GPUs misses the deadline", why=why, next=then)


def _money_symptom(case: Any, got: Any) -> Wrong:
    """Money that is not what the answer's own GPUs and hours cost."""
    chip, said = case["chip"], got["money"]
    right = got["rented"] * got["hours"] * chip["price_per_gpu_h"]
    why = f"got {_short(said)}, but {got['rented']:g} GPUs for {_short(got['hours'])} h cost {_short(right)}"
    train = got["hours"] - chip["setup_h"]
    slips = (
        ("your cost leaves out idle GPUs", got["gpus"] * got["hours"], "pay for every rented GPU"),
        ("your cost leaves out the hours of the set-up", got["rented"] * train, "pay for the hours of the set-up, too"),
        ("your cost is that of only one GPU", got["hours"], "multiply by the number of rented GPUs"),
        (
            "your cost counts a whole node as one GPU",
            got["rented"] / chip["node_gpus"] * got["hours"],
            "pay for each GPU of a node",
        ),
        ("your cost is that of only one node", chip["node_gpus"] * got["hours"], "pay for all rented nodes"),
    )
    for what, gpu_hours, then in slips:
        if close(said, gpu_hours * chip["price_per_gpu_h"]):
            return Wrong(what, why=why, next=then)
    return Wrong("your cost of the run is wrong", why=why, next="multiply the rented GPUs by the hours and the price")


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
