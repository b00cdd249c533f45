"""Loops whose causes are known: to test a diagnosis on, and to practise on."""

from __future__ import annotations

from tests.data.loops.labelled import Labelled, LoopSpec, drawn_spec, labelled_loops
from tests.data.loops.real import Injected, injected_loops
from tests.data.loops.truth import true_shares

__all__ = ["Injected", "Labelled", "LoopSpec", "drawn_spec", "injected_loops", "labelled_loops", "true_shares"]
