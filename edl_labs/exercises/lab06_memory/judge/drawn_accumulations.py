"""The cases of same_or_not: each answer five times, with the layers and habits that are mistaken for its cause."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_NORMS = ("layer_norm", "group_norm")


@case_source("same_or_not")
def jobs(rng: Any) -> list[Case]:
    frozen, frozen_sync = _norm(training=False), _norm("sync_batch_norm", training=False)
    noise, still = _dropout(rng), _dropout(rng, training=False)
    made = [
        *(_job(rng, [_single(rng)]), _job(rng, [frozen]), _job(rng, [still, _single(rng)])),
        *(_job(rng, [{**noise, "p": 0.0}], clip="window"), _job(rng, [frozen_sync, still], scaler="window")),
        *(_job(rng, [noise]), _job(rng, [noise, _single(rng)]), _job(rng, [frozen, noise], clip="window")),
        *(_job(rng, [noise, still], scheduler="window"), _job(rng, [frozen_sync, noise])),
        *(_job(rng, [_norm(running=False)]), _job(rng, [_norm("sync_batch_norm")])),
        _job(rng, [noise, _norm()], is_shuffled=False, clip="window"),
        *(_job(rng, [_norm(training=False, running=False)]), _job(rng, [frozen, _norm(), still])),
        *(_job(rng, [_single(rng)], clip="micro-batch"), _job(rng, [frozen, still], scaler="micro-batch")),
        *(_job(rng, [noise], scheduler="micro-batch"), _job(rng, [_norm(), noise], clip="micro-batch")),
        _job(rng, [_norm()], clip="window", scheduler="micro-batch"),
    ]
    return [Case(given=made[i]) for i in rng.permutation(len(made))]


def _job(rng: Any, layers: list[Any], *, is_shuffled: bool = True, **done: str) -> dict[str, Any]:
    return {
        "layers": [layers[i] for i in rng.permutation(len(layers))] if is_shuffled else layers,
        "optimizer": str(rng.choice(["sgd", "adam"])),
        **{name: done.get(name, "") for name in ("clip", "scaler", "scheduler")},
    }


def _single(rng: Any) -> dict[str, Any]:
    return {"kind": str(rng.choice(_NORMS)), "training": True}


def _norm(kind: str = "batch_norm", *, training: bool = True, running: bool = True) -> dict[str, Any]:
    return {"kind": kind, "training": training, "running_statistics": running}


def _dropout(rng: Any, *, training: bool = True) -> dict[str, Any]:
    return {"kind": "dropout", "training": training, "p": float(rng.choice([0.1, 0.3, 0.5]))}
