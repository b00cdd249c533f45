"""Loops whose causes are known: to test a diagnosis on, and to practise on."""

from __future__ import annotations

from edl_labs.trace.corpus.labelled import Labelled, LoopSpec, drawn_spec, labelled_loops
from edl_labs.trace.corpus.real import Injected, injected_loops
from edl_labs.trace.corpus.truth import true_shares

__all__ = ["Injected", "Labelled", "LoopSpec", "drawn_spec", "injected_loops", "labelled_loops", "true_shares"]
