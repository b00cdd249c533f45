"""The labelled corpus: every cause in four severities on two machines, and mixtures; each with its true shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from edl_labs.trace.corpus.spec import CORPUS_CAUSES, LoopSpec, drawn_spec
from edl_labs.trace.corpus.truth import true_shares
from edl_labs.trace.loops import VirtualLoop

# Enough for an interval over steps, and quick on virtual time.
STEPS = 10
# With less between the first and the second a loop has no dominant cause to name.
_MARGIN = 0.05
_MACHINES = ("A100-80GB", "H200")
_BASE = LoopSpec("base", kernels=40, kernel_s=30e-6)


@dataclass(frozen=True)
class Labelled:
    """A loop with what is known of it: its true shares and its dominant cause."""

    spec: LoopSpec
    shares: dict[str, float]

    @property
    def loop(self) -> VirtualLoop:
        """The loop, to record, time and ablate."""
        return self.spec.loop()

    @property
    def dominant(self) -> str:
        """The cause with the largest true share."""
        return max(self.shares, key=lambda cause: self.shares[cause])

    @property
    def margin(self) -> float:
        """By how much the dominant cause's share exceeds the next one's."""
        first, second = sorted(self.shares.values(), reverse=True)[:2]
        return first - second


def labelled_loops(*, mixtures: int = 24, seed: int = 0) -> Iterator[Labelled]:
    """7 causes x 4 severities x 2 machines, then mixtures drawn from `seed`; all with a dominant cause."""
    for machine in _MACHINES:
        for cause in CORPUS_CAUSES:
            for severity in range(4):
                spec = replace(_BASE, name=f"{cause} {severity + 1} on {machine}", machine=machine, seed=severity)
                yield _labelled(replace(spec, **_SEVERITIES[cause][severity]))
    found = 0
    while found < mixtures:
        candidate = _labelled(drawn_spec(seed))
        seed += 1
        if candidate.margin >= _MARGIN:
            found += 1
            yield candidate


def _labelled(spec: LoopSpec) -> Labelled:
    return Labelled(spec, true_shares(spec.loop(), steps=STEPS))


# Seconds.
_MS, _US = 1e-3, 1e-6
_SEVERITIES: dict[str, list[dict[str, Any]]] = {
    "compute": [{"kernel_s": seconds} for seconds in (15 * _US, 40 * _US, 150 * _US, 600 * _US)],
    "copy": [{"copy_bytes": size} for size in (18_000_000, 30_000_000, 60_000_000, 150_000_000)],
    "launch": [
        {"kernel_s": seconds, "kernels": count, "spread": 0.2}
        for seconds, count in ((1.6 * _US, 60), (1.2 * _US, 120), (0.8 * _US, 200), (0.5 * _US, 300))
    ],
    "sync": [
        {"kernel_s": 5.5 * _US, "reads": 40, "spread": 0.1},
        {"kernel_s": 4.5 * _US, "reads": 40, "spread": 0.1},
        {"kernel_s": 4.5 * _US, "reads": 80, "spread": 0.1},
        {"kernel_s": 6 * _US, "reads": 120, "spread": 0.1, "kernels": 60},
    ],
    "data": [{"data_s": seconds, "jitter": 0.2} for seconds in (2.8 * _MS, 4 * _MS, 8 * _MS, 25 * _MS)],
    "alloc": [
        {"allocs": count, "alloc_s": seconds, "frees": frees}
        for count, seconds, frees in (
            (4, 0.8 * _MS, False),
            (2, 1.5 * _MS, True),
            (8, 0.6 * _MS, True),
            (1, 9 * _MS, False),
        )
    ],
    "host": [{"host_s": seconds} for seconds in (2.8 * _MS, 4 * _MS, 8 * _MS, 20 * _MS)],
}
