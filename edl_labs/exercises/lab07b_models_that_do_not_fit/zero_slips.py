"""Mistakes about ZeRO's stages: what each would give in place of the right bytes, and its sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import close

STAGES = ("0", "1", "2", "3")
PARTS = ("weights", "gradients", "optimizer")
ZeroTable = dict[str, dict[str, Any]]  # a stage's part, as multiples of its bytes a parameter


def same_table(got: ZeroTable, want: ZeroTable | None) -> bool:
    return want is not None and all(close(got[stage][part], want[stage][part]) for stage in STAGES for part in PARTS)


class ZeroCase:
    """What is right in a case, to make of it what a slip would give."""

    def __init__(self, case: Any, want: Any) -> None:
        self.recipe, self.ranks, self.times = case["recipe"], case["ranks"], case["recipe"]["micro_batches"]
        self.held, self.sent = want["parts"]["held"], want["parts"]["sent"]
        self.trained, self.trained_shard = self.held["0"]["gradients"], self.held["3"]["gradients"]
        self.all, self.all_shard = self.held["0"]["weights"], self.held["3"]["weights"]
        self.once = (self.ranks - 1) * self.trained_shard

    def holds(self, **changed: dict[str, Any]) -> ZeroTable:
        """What is held, but for parts of stages: `gradients={"1": shard}`."""
        return _changed(self.held, changed)

    def sends(self, **changed: dict[str, Any]) -> ZeroTable:
        """What is sent, but for parts of stages."""
        return _changed(self.sent, changed)

    def shards(self, whole: Callable[[int], float], *, at_once: bool = False) -> ZeroTable:
        """What is held where shards are cut in another way, layer by layer or all parameters at once."""
        layers, frozen = self.recipe["layers"], self.recipe["frozen"]
        kept = {"weights": layers, "gradients": layers[frozen:], "optimizer": layers[frozen:]}
        cut = {part: whole(sum(kept[part])) if at_once else sum(map(whole, kept[part])) for part in PARTS}
        return {
            stage: {part: cut[part] if row[part] < self.held["0"][part] else row[part] for part in PARTS}
            for stage, row in self.held.items()
        }

    def travels(self, shards: ZeroTable) -> ZeroTable:
        """What is sent, with other shards: as often as is right."""
        gathered = {"3": self.times * (self.ranks - 1) * (shards["3"]["weights"] + shards["3"]["gradients"])}
        swap = shards["3"]["gradients"] / self.trained_shard
        found = {stage: {part: swap * value for part, value in row.items()} for stage, row in self.sent.items()}
        return _changed(found, {"weights": gathered})


def _changed(table: ZeroTable, changed: dict[str, dict[str, Any]]) -> ZeroTable:
    return {
        stage: {part: changed.get(part, {}).get(stage, value) for part, value in row.items()}
        for stage, row in table.items()
    }


def _at(rows: dict[str, str]) -> Callable[[ZeroCase], ZeroTable]:
    """Each stage as another one."""
    return lambda case: {stage: case.held[rows.get(stage, stage)] for stage in STAGES}


def _constant(case: ZeroCase, each: float) -> ZeroTable:
    """Gradients of so many bytes, whatever the recipe says."""
    return {
        stage: {part: (part != "gradients") * row[part] + each * row["gradients"] for part in PARTS}
        for stage, row in case.held.items()
    }


def _all_alike(case: ZeroCase, *, upto: int) -> ZeroTable:
    """Frozen layers with gradients and state, as if they were trained."""
    cut = {False: case.all, True: case.all_shard}
    shared = {part: [cut[int(stage) >= at] for stage in STAGES] for part, at in (("gradients", 2), ("optimizer", 1))}
    return case.holds(**{part: dict(zip(STAGES, rows, strict=True)) for part, rows in list(shared.items())[:upto]})


def _frozen_last(case: ZeroCase) -> ZeroTable:
    """The last layers frozen in place of the first."""
    layers = case.recipe["layers"]
    kept = layers[: len(layers) - case.recipe["frozen"]]
    return case.holds(**_trained(case, sum(kept), sum(-(-count // case.ranks) for count in kept)))


def _padded(case: ZeroCase) -> ZeroTable:
    """What is whole, with the padding of its shards."""
    table = case.holds(**_trained(case, case.ranks * case.trained_shard, case.trained_shard))
    return _changed(table, {"weights": dict.fromkeys("012", case.ranks * case.all_shard)})


def _trained(case: ZeroCase, whole: float, shard: float) -> dict[str, dict[str, Any]]:
    """Gradients and state of other layers: shards where they are shards."""
    parts = ("gradients", "optimizer")
    is_whole = {part: [case.held[stage][part] == case.trained for stage in STAGES] for part in parts}
    return {part: {s: whole if w else shard for s, w in zip(STAGES, is_whole[part], strict=True)} for part in parts}


_ONE = "in all cases, and all else is right"
ZeroSlip = tuple[Callable[[ZeroCase], Any], str, str, str]
HELD_SLIPS: tuple[ZeroSlip, ...] = (
    (
        lambda case: case.holds(gradients={"1": case.trained_shard}),
        "stage 1 does not shard gradients yet",
        f"its gradients came as shards {_ONE}",
        "what does each stage add to the one before?",
    ),
    (
        _at({"0": "1", "1": "2", "2": "3"}),
        "each stage was taken for the next one",
        f"stage 0 holds what stage 1 should {_ONE}",
        "stage 0 shards nothing",
    ),
    (_at({"1": "2", "2": "3"}), "each stage was taken for the next one", _ONE, "stage 1 shards the optimizer alone"),
    (
        lambda case: case.holds(optimizer={"2": case.trained, "3": case.trained}, gradients={"3": case.trained}),
        "a stage keeps what the stages before it sharded",
        f"stage 2 holds the optimizer's whole state again {_ONE}",
        "stages add up",
    ),
    (
        lambda case: case.holds(weights={"3": case.all}),
        "stage 3 shards the weights too",
        f"it holds them whole {_ONE}",
        "between two passes, what does it hold of a layer's weights?",
    ),
    (
        lambda case: case.holds(
            weights={"1": case.all_shard, "2": case.all_shard}, optimizer={"1": case.trained, "2": case.trained}
        ),
        "the stages shard in another order",
        f"weights are sharded first and the optimizer last {_ONE}",
        "the largest part first",
    ),
    (
        lambda case: case.shards(lambda count: count / case.ranks),
        "shards are not rounded up",
        f"a layer was divided by the ranks with fractions {_ONE}",
        "all shards of a layer are equally long, and whole",
    ),
    (
        lambda case: case.shards(lambda count: count // case.ranks),
        "shards were rounded down",
        f"the last parameters of a layer are on no GPU {_ONE}",
        "every parameter is on one",
    ),
    (
        lambda case: case.shards(lambda count: -(-count // case.ranks), at_once=True),
        "shards are rounded up once for the whole model",
        f"its layers were added up before they were cut {_ONE}",
        "each layer is cut by itself",
    ),
    (
        lambda case: _all_alike(case, upto=2),
        "frozen layers have no gradients and no optimizer state",
        f"they were counted as if they were trained {_ONE}",
        "what is kept of a layer that is not updated?",
    ),
    (
        lambda case: case.holds(optimizer={"0": case.all, **dict.fromkeys("123", case.all_shard)}),
        "frozen layers have no optimizer state",
        f"theirs was counted {_ONE}",
        "what is not updated needs none",
    ),
    (
        _frozen_last,
        "the first layers are frozen, and not the last",
        "gradients and optimizer are those of the layers before the last `frozen` ones in all cases",
        "layers[frozen:] are trained",
    ),
    (
        _padded,
        "what is whole has no padding",
        f"ranks times the shards were counted {_ONE}",
        "what is not sharded is as long as the layers are",
    ),
    (
        lambda case: _all_alike(case, upto=1),
        "frozen layers have no gradients",
        f"theirs were counted {_ONE}",
        "the backward pass ends above them",
    ),
    (
        lambda case: case.holds(
            weights={stage: case.trained_shard if stage == "3" else case.trained for stage in STAGES}
        ),
        "frozen layers have weights too",
        f"they were left out {_ONE}",
        "the forward pass goes through them",
    ),
    (
        lambda case: case.holds(weights={"3": case.all - case.trained + case.trained_shard}),
        "frozen weights are sharded as well",
        f"stage 3 holds them whole {_ONE}",
        "weights are weights, trained or not",
    ),
    (
        lambda case: _constant(case, 4),
        "gradients were taken for fp32, whatever the recipe says",
        f"four bytes a parameter {_ONE}",
        "recipe['gradients']",
    ),
    (
        lambda case: _constant(case, 2),
        "gradients were taken for two bytes, whatever the recipe says",
        _ONE,
        "recipe['gradients']",
    ),
)


def _multiplied(case: ZeroCase, factor: float, stages: str) -> ZeroTable:
    rows = case.sent.items()
    return {
        stage: {part: value * (factor if stage in stages else 1) for part, value in row.items()} for stage, row in rows
    }


def _like_weights(case: ZeroCase, *, part: str) -> ZeroTable:
    """All that travels, at the bytes of `part`."""
    return {stage: {one: sum(row.values()) if one == part else 0 for one in PARTS} for stage, row in case.sent.items()}


SENT_SLIPS: tuple[ZeroSlip, ...] = (
    (
        lambda case: case.sends(weights={"3": case.times * (case.ranks - 1) * case.all_shard}),
        "stage 3 gathers weights before the backward pass too",
        f"they were sent for one pass alone {_ONE}",
        "what happened to the gathered weights after the forward pass?",
    ),
    (
        lambda case: dict.fromkeys(STAGES, case.sent["0"]),
        "every stage sends what plain data parallel training does",
        f"stages 1 to 3 came as stage 0 {_ONE}",
        "weights that a GPU has not updated itself, or does not hold, have to come from somewhere",
    ),
    (
        lambda case: _multiplied(case, case.ranks / (case.ranks - 1), "0123"),
        "a GPU does not send its own shard to itself",
        f"every number is ranks / (ranks - 1) times what it should be {_ONE}",
        "how many of the shards go through a GPU's link?",
    ),
    (
        lambda case: case.travels(case.shards(lambda count: count / (case.ranks - 1))),
        "ranks - 1 shards of a layer are less than the layer",
        f"whole layers were sent {_ONE}",
        "ranks - 1 shards, each rounded up",
    ),
    (
        lambda case: case.sends(gradients={"0": case.once}),
        "an all-reduce goes there and back",
        f"stage 0 sends half of it {_ONE}",
        "reduce and scatter, then gather",
    ),
    (
        lambda case: case.sends(weights={"1": 0, "2": 0}),
        "updated weights have to be gathered",
        f"stages 1 and 2 send gradients alone {_ONE}",
        "each GPU has updated its own shard: who has the others?",
    ),
    (
        lambda case: case.sends(
            gradients={"1": 2 * case.once, "2": 2 * case.sent["2"]["gradients"], "3": 2 * case.sent["3"]["gradients"]}
        ),
        "sharded gradients are not all-reduced",
        f"stages 1 to 3 sent the sums to everybody {_ONE}",
        "who needs the sum of a shard's gradients?",
    ),
    (
        lambda case: case.sends(gradients={"1": 2 * case.once}),
        "stage 1 needs no all-reduce",
        f"it sent the sums to everybody {_ONE}",
        "who updates a shard, and who needs its gradients?",
    ),
    (
        lambda case: case.sends(
            gradients={"2": case.once, "3": case.once}, weights={"3": case.sent["3"]["weights"] / case.times}
        ),
        "stages 2 and 3 send in every micro-batch",
        f"one micro-batch was counted {_ONE}",
        "where would whole gradients, or whole weights, wait for the next micro-batch?",
    ),
    (
        lambda case: case.sends(gradients={"2": case.once, "3": case.once}),
        "sharded gradients are summed after every micro-batch",
        f"stages 2 and 3 sent them once a step {_ONE}",
        "where would whole gradients wait for the next micro-batch?",
    ),
    (
        lambda case: case.sends(gradients={"2": case.once}),
        "stage 2 keeps no whole gradients between micro-batches",
        f"it sent them once a step {_ONE}",
        "where would they wait?",
    ),
    (
        lambda case: case.sends(weights={"3": case.sent["3"]["weights"] / case.times}),
        "stage 3 gathers weights in every micro-batch",
        f"they were gathered for one {_ONE}",
        "where would whole weights wait for the next micro-batch?",
    ),
    (
        lambda case: _multiplied(case, case.times, "01"),
        "stages 0 and 1 send once a step, however many micro-batches there are",
        f"stages 0 and 1 sent in every micro-batch {_ONE}",
        "gradient accumulation",
    ),
    (
        lambda case: case.sends(gradients={"0": 2 * case.once * case.times, "1": case.once * case.times}),
        "whole gradients are added up in place, and sent once a step",
        f"stages 0 and 1 sent them in every micro-batch {_ONE}",
        "gradient accumulation",
    ),
    (
        lambda case: case.sends(weights={"3": 2 * case.times * (case.ranks - 1) * case.all_shard}),
        "no backward pass goes through frozen layers",
        f"their weights were gathered for it {_ONE}",
        "where does the backward pass end?",
    ),
    (
        lambda case: case.sends(weights=dict.fromkeys("12", (case.ranks - 1) * case.all_shard)),
        "frozen weights are not updated",
        f"stages 1 and 2 gathered them {_ONE}",
        "which weights have changed?",
    ),
    (
        lambda case: case.travels(case.shards(lambda count: count / case.ranks)),
        "shards that travel are not rounded up",
        f"a layer was divided by the ranks with fractions {_ONE}",
        "all shards of a layer are equally long, and whole",
    ),
    (
        lambda case: _like_weights(case, part="weights"),
        "gradients travel at the weights' bytes",
        f"recipe['gradients'] makes no difference {_ONE}",
        "each part at its own bytes",
    ),
    (
        lambda case: _like_weights(case, part="gradients"),
        "weights travel at the gradients' bytes",
        f"recipe['weights'] makes no difference {_ONE}",
        "each part at its own bytes",
    ),
)
