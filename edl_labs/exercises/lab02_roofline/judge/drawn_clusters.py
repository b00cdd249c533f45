"""The cases of network_roofline and scaling_plan: steps on clusters, and jobs to plan."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab02_roofline.answer_forms import tidy
from edl_labs.exercises.lab02_roofline.data_parallel_rings import HIDERS

_CLEAR = 1e-3  # nearer to the wanted efficiency, a rounding would decide how many nodes
_FEW_BUCKETS = (3, 4, 5, 6, 8)  # so few that a bucket of either row is well above the tolerance
_BUCKETS = (*_FEW_BUCKETS, 16, 32)
_ALL_HIDDEN = 10**9  # so many buckets that nothing is left over


@case_source("network_roofline")
def steps(rng: Any) -> list[Case]:
    deck = _cluster_case(rng, nodes=2, batch=4000) | {"itemsize": 4, "behind": "weight gradient", "buckets": 2}
    alone = _cluster_case(rng, nodes=1, batch=int(rng.integers(64, 4000)))
    drawn = [
        _cluster_case(rng, nodes=int(rng.integers(2, 65)), batch=int(rng.integers(1, 200)) * 64, hidden=bool(i % 2))
        for i in range(8)
    ]
    # Mistakes that two nodes cannot tell apart are told by larger rings first.
    return [Case(given=one) for one in [*drawn, deck, alone]]


def _cluster_case(rng: Any, *, nodes: int, batch: int, hidden: bool = True) -> dict[str, Any]:
    """A step in which the network takes a third of the backward pass (hidden) or three times as long."""
    rate, weights, itemsize = (
        float(rng.integers(5, 400)) * 1e12,
        int(rng.integers(20, 4000)) * 10**6,
        int(rng.choice([2, 4])),
    )
    backward_s = 4 * weights * batch / nodes / rate
    sent = 2 * (nodes - 1) / nodes * itemsize * weights
    longer = float(rng.uniform(0.2, 0.5)) if hidden else float(rng.uniform(1.5, 4))
    return {
        "batch": batch,
        "nodes": nodes,
        "itemsize": itemsize,
        "weights": weights,
        "node_flop_per_s": rate,
        "link_byte_per_s": tidy(sent / (longer * backward_s)) if nodes > 1 else 10e9,
        "behind": str(rng.choice(HIDERS)),
        "buckets": int(rng.choice(_FEW_BUCKETS)),
    }


@case_source("scaling_plan")
def jobs(rng: Any) -> list[Case]:
    kinds = ["weak", "none"] * 3
    others = iter([_job(rng, kind) for kind in [*kinds, "all", "equal"]])
    drawn = [case for _ in range(3) for case in (_cut(rng), next(others), next(others))]
    return [Case(given=one) for one in [*drawn, *others, _full(rng), _uneven(rng)]]


def _cut(rng: Any) -> dict[str, Any]:
    """A job for strong scaling, to fewer nodes than if all the sending was hidden, and to more than if none was."""
    while True:
        case = _job(rng, "strong")
        plans = [_with_buckets(case, buckets) for buckets in (1, case["job"]["buckets"], _ALL_HIDDEN)]
        reached = [(_most(plan, grow=False), _most(plan, grow=True)) for plan in plans]
        (none, _), (some, _), (most, _) = reached
        if all(0 < weak < strong for strong, weak in reached) and none < some < most:
            return case


def _with_buckets(case: Any, buckets: int) -> dict[str, Any]:
    return {**case, "job": {**case["job"], "buckets": buckets}}


def _job(rng: Any, kind: str, *, step: int = 32) -> dict[str, Any]:
    """A job whose plan is of `kind`, decided by no rounding; "all": every node of the cluster is of use."""
    while True:
        nodes = int(rng.integers(4, 40))
        batch = int(rng.integers(1, 60)) * step
        room = float(rng.choice([1, 1.5, 2, 3, 6, 50]))
        job = {
            "weights": int(rng.integers(10, 3000)) * 10**6,
            "itemsize": int(rng.choice([2, 4])),
            "batch": batch,
            "largest_batch": int(room * batch) + int(rng.integers(0, step)),
            "least_efficiency": float(rng.choice([0.5, 0.7, 0.8, 0.9])),
            "buckets": int(rng.choice(_BUCKETS)),
        }
        ridge = batch * float(2 ** rng.uniform(-4, 4))
        cluster = {"nodes": nodes, "node_flop_per_s": float(rng.integers(5, 400)) * 1e12}
        cluster["link_byte_per_s"] = tidy(cluster["node_flop_per_s"] / ridge)
        case = {"job": job, "cluster": cluster}
        strong, weak = (_most(case, grow=grow) for grow in (False, True))
        if strong and weak and _kind(strong, weak, nodes) == kind:
            return case


def _full(rng: Any) -> dict[str, Any]:
    """A job whose batch fills its limit to the last example."""
    while True:
        case = _job(rng, "weak")
        case["job"]["largest_batch"] = case["job"]["batch"] * _most(case, grow=True)
        if 1 < _most(case, grow=False) < _most(case, grow=True):
            return case


def _uneven(rng: Any) -> dict[str, Any]:
    """A job with few examples, whose plan changes if a node's share of them is rounded down."""
    while True:
        case = _job(rng, "strong", step=1)
        # A model so large that a node takes seconds for an example.
        case["job"]["weights"] = int(tidy(case["cluster"]["node_flop_per_s"] / float(rng.uniform(2, 5))))
        if _most(case, grow=False, whole=True) not in (0, _most(case, grow=False)):
            return case


def _kind(strong: int, weak: int, nodes: int) -> str:
    if max(strong, weak) == nodes:
        return "all"
    return "none" if max(strong, weak) == 1 else "weak" if weak > strong else "strong" if strong > weak else "equal"


def _share(case: Any, nodes: int, *, grow: bool) -> float:
    """Throughput of one node among `nodes`, relative to its throughput alone: times per weight and example."""
    job, cluster = case["job"], case["cluster"]
    examples = job["batch"] if grow else job["batch"] / nodes
    sending = 2 * (nodes - 1) / nodes * job["itemsize"] * cluster["node_flop_per_s"] / cluster["link_byte_per_s"]
    shorter, longer = sorted((4 * examples, sending))
    return 6 * examples / (2 * examples + longer + shorter / job["buckets"])


def _most(case: Any, *, grow: bool, whole: bool = False) -> int:
    """The most nodes that are still of use; 0 when a rounding would decide it. `whole`: by shares rounded down."""
    least, most = case["job"]["least_efficiency"], 1
    for nodes in range(2, case["cluster"]["nodes"] + 1):
        if grow and nodes * case["job"]["batch"] > case["job"]["largest_batch"]:
            break
        share = _share(case, nodes, grow=grow)
        if whole and not grow:
            share *= case["job"]["batch"] // nodes * nodes / case["job"]["batch"]
        if abs(share - least) < _CLEAR:
            return 0
        most = nodes if share > least else most
    return most
