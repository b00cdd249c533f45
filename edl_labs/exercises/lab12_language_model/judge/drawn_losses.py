"""The cases of chunked_loss: kinds of loss, ragged chunks and ignored targets, and what known slips give."""

from __future__ import annotations

from typing import Any

import numpy as np

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab12_language_model.chunked_losses import IGNORED, drawn_inputs

# (dtype, smoothing, mean, scale)
_KINDS = (
    ("float64", 0.0, True, 1),
    ("float64", 0.1, True, 1),
    ("float64", 0.2, False, 400),  # logits of more than 709, where exp is inf
    ("float32", 0.0, False, 1),
    ("float32", 0.1, True, 1),
)


@case_source("chunked_loss")
def losses(rng: Any) -> list[Case]:
    return [_case(rng, *kind) for kind in _KINDS]


def _case(rng: Any, dtype: str, smoothing: float, mean: bool, scale: int) -> Case:
    rows = int(rng.integers(5, 9))
    positions = rows * int(rng.integers(18, 23)) + int(rng.integers(1, rows - 1))  # the last chunk is ragged
    words, width = int(rng.integers(80, 100)), int(rng.integers(3, 7))
    targets = rng.integers(words, size=positions)
    targets[rng.permutation(positions)[: int(rng.integers(5, positions // 4))]] = IGNORED
    targets[np.flatnonzero(targets != IGNORED)[0]] = 0  # word 0 counts as any other
    given = {
        "positions": positions,
        "words": words,
        "width": width,
        "rows": rows,
        "dtype": dtype,
        "smoothing": smoothing,
        "mean": mean,
        "scale": scale,
        "ignored": int((targets == IGNORED).sum()),
        "targets": targets.tolist(),
    }
    seed = int(rng.integers(2**31))
    return Case(given=given, hidden={"seed": seed, "slips": _slips({**given, "seed": seed})})


def _slips(case: Any) -> dict[str, float]:
    """The losses that known slips give on the case's values."""
    inputs = drawn_inputs(case, seed=case["seed"])
    logits = inputs["hidden"].double().numpy() @ inputs["weight"].double().numpy().T
    logits -= logits.max(1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    targets, smoothing, rows = np.array(case["targets"]), case["smoothing"], case["rows"]
    used = targets != IGNORED
    picked = -logs[np.arange(len(targets)), np.where(used, targets, 0)]
    each = (1 - smoothing) * picked - smoothing * logs.mean(1)
    others = (1 - smoothing) * picked + smoothing * (-logs.sum(1) - picked) / (case["words"] - 1)
    count = used.sum() if case["mean"] else 1
    chunks = [slice(at, at + rows) for at in range(0, len(targets), rows)]
    whole = len(targets) // rows * rows
    found = {
        "mean_of_means": np.mean([each[one][used[one]].mean() for one in chunks if used[one].any()])
        if case["mean"]
        else each[used].sum(),
        "over_all": each[used].sum() / (len(targets) if case["mean"] else 1),
        "ignored_counted": each.sum() / (len(targets) if case["mean"] else 1),
        "no_smoothing": picked[used].sum() / count,
        "always_sum": each[used].sum(),
        "always_mean": each[used].sum() / used.sum(),
        "smoothed_others": others[used].sum() / count,
        "smoothed_ignored": ((1 - smoothing) * picked * used - smoothing * logs.mean(1)).sum() / count,
        "word_0_ignored": each[targets > 0].sum() / ((targets > 0).sum() if case["mean"] else 1),
        "last_chunk_unseen": each[:whole][used[:whole]].sum() / count,
        "last_chunk_lost": each[:whole][used[:whole]].sum() / (used[:whole].sum() if case["mean"] else 1),
    }
    return {name: float(value) for name, value in found.items()}
