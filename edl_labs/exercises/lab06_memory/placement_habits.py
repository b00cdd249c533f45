"""What placements of all cases have in common: the one slip that explains those that are not the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edl_labs.errors import Wrong
from edl_labs.virtual.memory import TapeReplay

RULES = 2  # of `least_again_by_sum`
_MANY = 3  # stretches from which on it is a habit that each has one layer
_SAME_S = 1e-9  # seconds are drawn in steps of 10 µs


@dataclass(frozen=True)
class Placed:
    """One case's placement: what ran again, what it held, how many second runs fewer than the best step it has."""

    case: Any
    stretches: list[Any]
    is_right: bool
    is_late: bool  # the step is as it should be, but for the time that it takes
    peak_bytes: int
    fewer_again: int
    again_s: float  # -1 where the step is not as it should be
    summed_again_s: list[float]  # the same of the best placements by wrong sums, -1 where none fits by one

    @property
    def equal_length(self) -> int:
        """How many layers each stretch has, where all have as many and lie side by side from the front; else 0."""
        lengths = {stop - start for start, stop in self.stretches}
        found = lengths.pop() if len(lengths) == 1 else 0
        return found if found and all(start % found == 0 for start, _ in self.stretches) else 0

    def is_by_sum(self, rule: int) -> bool:
        """Whether it is what is best by a wrong sum, or that sum leaves nothing to choose from."""
        least_s = self.summed_again_s[rule]
        return least_s < 0 or abs(self.again_s - least_s) < _SAME_S


def placement_habit(placed: list[Placed]) -> Wrong | None:
    """What all placements have in common that explains those that are wrong; None where nothing does."""
    lengths = {stop - start for one in placed for start, stop in one.stretches}
    if lengths == {1} and sum(len(one.stretches) for one in placed) >= _MANY:
        then = (
            "try longer stretches too: outputs inside a stretch are dropped until it runs again, so one long stretch "
            "keeps less in memory than several short ones"
        )
        why = "none of your stretches has two layers"
        return Wrong("your answers contain only stretches of one layer", why=why, next=then)
    if all(one.peak_bytes == one.case["least_bytes"] for one in placed):
        why = "every answer has the lowest possible peak, even if the budget has room for more"
        then = "choose the fastest of all sets of stretches that fit"
        return Wrong("your code minimises the peak instead of the time", why=why, next=then)
    if any(all(one.is_by_sum(rule) for one in placed) for rule in range(RULES)):
        return _summed("the stretches of all your answers would be")
    if _are_equal_cuts(placed):
        why = (
            "your answers always cut the same number of layers into the same equal stretches, regardless of the "
            "layers and "
            "the budget"
        )
        then = "which layers save many bytes and run in a short time? Try every set of stretches that fits"
        return Wrong("your code cuts the layers into equal stretches", why=why, next=then)
    if all(one.is_right or (one.is_late and not _is_proportional(one.case)) for one in placed):
        why = (
            "where each backward pass takes twice as long as its forward pass, your answers are right; elsewhere, "
            "some are not"
        )
        then = "add up only forward passes: a backward pass runs once, with or without stretches"
        return Wrong("your code counts the time of backward passes", why=why, next=then)
    if lengths and all(len(one.stretches) < 2 for one in placed):
        why = "none of your answers has two stretches"
        then = "try several stretches, with kept layers between them"
        return Wrong("your answers never have more than one stretch", why=why, next=then)
    if all(one.is_right or one.is_late for one in placed) and all(one.fewer_again >= 0 for one in placed):
        why = "your answers never run more layers again than the best step, but your wrong answers take longer"
        then = "add up the forward seconds of the layers that run again"
        return Wrong("your code minimises the number of layers that run again, not their seconds", why=why, next=then)
    return None


def summed_symptom(run: TapeReplay, summed_again_s: list[float]) -> Wrong | None:
    """A placement that is slow, and the best where more is counted at the peak than is held."""
    is_so = any(least_s >= 0 and abs(run.recomputed_s - least_s) < _SAME_S for least_s in summed_again_s)
    return _summed("these stretches would be") if is_so else None


def _summed(whose: str) -> Wrong:
    return Wrong(
        "your code counts more at the peak than is held at once",
        why=f"{whose} optimal if all other layers were in memory while the largest stretch runs again",
        next="when a stretch runs again, count only the layers before it: the layers after it have run backward and "
        "are "
        "freed",
    )


def _are_equal_cuts(placed: list[Placed]) -> bool:
    """Whether each answer is cut into stretches of one length, which depends on the number of layers alone."""
    cut = [one for one in placed if one.stretches]
    lengths = {(len(one.case["layers"]), one.equal_length) for one in cut}
    is_one_each = len(lengths) == len({count for count, _ in lengths})
    return len(cut) >= _MANY and is_one_each and all(length for _, length in lengths)


def _is_proportional(case: Any) -> bool:
    """Whether every backward pass takes twice as long as its forward pass."""
    return all(abs(layer["backward_s"] - 2 * layer["forward_s"]) < 1e-9 for layer in case["layers"])
