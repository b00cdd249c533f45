"""Judging a change to a student's own loop by two traces: the cause that was named, its share, the gain, and the same
work.

Nothing of a prediction is asked. The judge works out shares and the bound on the gain itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite

from edl_labs.errors import Wrong
from edl_labs.trace.causes import CAUSES
from edl_labs.trace.pair_facts import Side
from edl_labs.units import percent, seconds

MOST_OVER_BOUND = 0.1  # of the step: shares of a few steps are that uncertain
SAME_FLOP = 0.01  # rounding of padded batches; a smaller model or batch differs by far more
_LEAST_FALL = 0.005  # of the step: below it a share is the same
_MOST = 0.5  # of the step: torch.compile takes from the host's code too, and 0.82 of a step became 0.86 of less
_CLEAR_FALL = 0.15  # of the step: half as much again as the tenth by which a gain may miss its bound
_LEAST_LETTERS = 3  # shorter words are part of most names
_TELLING_LETTERS = 8  # a part of a word that is as long belongs to few names: "dataloader"
_MORE_LETTERS = 40  # around a place: a sentence that lists all operators names none
_RECORD = "record both traces again with trace.hand_in(before, after)"


@dataclass(frozen=True)
class OwnPair:
    """What the traces before and after the change show."""

    before: Side
    after: Side

    @property
    def speedup(self) -> float:
        """How many times as fast a step became."""
        return self.before.step_s / self.after.step_s

    def require_same_work(self) -> None:
        """Wrong where the two traces are not of one loop on one machine, with the same inputs and FLOPs."""
        if (self.before.which, self.after.which) != ("before", "after") or self.before.pair != self.after.pair:
            raise Wrong(
                "the two traces do not belong together",
                why="both files must be written by the same call of hand_in()",
                next=_RECORD,
            )
        if self.before.device != self.after.device:
            raise Wrong(
                "the two traces were recorded on different devices",
                why="a faster machine is not a change to the loop",
                next="record both traces on the same machine",
            )
        if "VirtualGPU" in (self.before.origin, self.after.origin):
            raise Wrong(
                "this is a trace of a VirtualGPU", why="the trace must come from a loop that really ran", next=_RECORD
            )
        if self.before.input_shapes != self.after.input_shapes:
            raise Wrong(
                "the batches before and after the change have different shapes",
                why="a step with fewer samples is faster even if nothing else changes",
                next="use the same batch in both loops",
            )
        self._require_same_flop()

    def _require_same_flop(self) -> None:
        before, after = self.before.flop_per_step, self.after.flop_per_step
        if not before or (self.after.hides_operators and (after or 0.0) <= before * (1 + SAME_FLOP)):
            return
        if after is None or abs(after / before - 1) > SAME_FLOP:
            raise Wrong(
                "the loop after the change computes something different",
                why="in a step, its products and convolutions take "
                f"{percent((after or 0.0) / before, digits=3)} of the FLOPs that they took before",
                next="keep the model, the batch and the steps, and change only how they are computed",
            )

    def require_cause(self, cause: object) -> str:
        """The cause that was named; Wrong unless it is one of the two largest before the change."""
        if not isinstance(cause, str) or cause not in CAUSES:
            raise Wrong(
                f"{cause!r} is not a cause", why=f"the causes are {', '.join(CAUSES)}", next="use one of these causes"
            )
        shares = self.before.shares
        if cause not in self.before.bounds_s:
            raise Wrong(
                f"{cause} does not limit the loop before the change",
                why=f"it takes {percent(shares[cause], digits=2)} of a step, and two other causes take more",
                next="read the shares that diagnose('own_before.json.gz') lists, starting with the largest",
            )
        return cause

    def require_place(self, cause: str, place: object) -> None:
        """Wrong unless the first trace charges `place`, a line or an operator, with `cause`."""
        said = place.strip().lower() if isinstance(place, str) else ""
        names = [text.lower() for text in self.before.places.get(cause, ())]
        if len(said) < _LEAST_LETTERS or not any(_is_place(said, name) for name in names):
            raise Wrong(
                "the trace does not attribute this cause to the line or operator that you named",
                why=f"{place!r} does not occur in any of the places to which {cause} is attributed",
                next="copy the line that the report shows next to the bar of this cause",
                keeps=0.5,
            )

    def require_fall(self, cause: str) -> None:
        """Wrong unless the share and the seconds of `cause` fell."""
        before, after = (side.shares[cause] for side in (self.before, self.after))
        saved_s = before * self.before.step_s - after * self.after.step_s
        fell = after < before - _LEAST_FALL and saved_s > 0
        # A change that takes from the rest too leaves the share of what most of a step is where it was.
        if not (fell or (before > _MOST and saved_s > _CLEAR_FALL * self.before.step_s)):
            raise Wrong(
                f"the share of {cause} did not fall",
                why=f"the cause took {percent(before, digits=3)} of a step before the change, and "
                f"takes {percent(after, digits=3)} after it",
                next="change the code that causes it, and record both loops again",
                keeps=0.5,
            )

    def require_possible_gain(self, cause: str) -> None:
        """Wrong where the loop became faster than without the cause, by more than a tenth of the step."""
        least_s = self.before.bounds_s[cause] - MOST_OVER_BOUND * self.before.step_s
        if not isfinite(self.speedup) or self.after.step_s < least_s:
            raise Wrong(
                f"the loop became faster than it would be without {cause}",
                why=f"a step took {seconds(self.before.step_s)} and now takes {seconds(self.after.step_s)}; without "
                f"{cause} it would take {seconds(self.before.bounds_s[cause])}",
                next="change one thing at a time, and record before and after under the same load",
                keeps=0.5,
            )


def _is_place(said: str, name: str) -> bool:
    """Whether a text names a line or an operator: in full, by a word behind its file or library, or by a long part.

    >>> [_is_place(said, "aten::copy_") for said in ("aten::copy_", "copy_", "aten", "cop")]
    [True, True, False, False]
    """
    if name in said:
        return len(said) <= len(name) + _MORE_LETTERS
    return said in name and (len(said) >= _TELLING_LETTERS or said in re.findall(r"\w+", name)[1:])
