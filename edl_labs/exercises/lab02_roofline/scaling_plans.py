"""scaling_plan: strong or weak scaling, and on how many nodes; what all wrong plans have in common names a mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import pair, say

SCALINGS = ("strong", "weak", "none")


@exercise("scaling_plan", uses=("network_roofline",))
class ScalingPlan(Exercise):
    """Strong or weak scaling, and on how many nodes.

    `student.plan(job, cluster)` gives `(scaling, nodes)`.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return student.plan(dict(given["job"]), dict(given["cluster"]))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        pair(got, "scaling, nodes")
        if got[0] not in SCALINGS:
            why = f"the three are: {', '.join(SCALINGS)}"
            raise Wrong(f"{got[0][:20]!r} is not one of the three answers", why=why, next="return one of them")
        if got[0] != want[0]:
            raise _scaling_mistake(case["job"], got, want)
        if type(got[1]) is not int or got[1] != want[1]:
            raise _nodes_mistake(case, got, want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What all wrong plans have in common, where that tells the mistake."""
        plans = [_Plan.of(*one) for one in zip(cases, got, want, strict=True)]
        wrong = [plan for plan in plans if (plan.how, plan.nodes) != plan.right]
        if not wrong or not all(plan.is_possible for plan in plans):
            return None
        for test, what, why, then in _COMMON:
            if test(plans, wrong):
                return Wrong(what, why=why, next=then)
        return None


@dataclass(frozen=True)
class _Plan:
    """One answer to scaling_plan: what came, what is `right`, of how many nodes, and how often the batch may grow."""

    how: Any
    nodes: Any
    right: tuple[str, int]
    most: int
    growth: float

    @classmethod
    def of(cls, case: Any, got: Any, want: Any) -> _Plan:
        job = case["job"]
        how, nodes = got if isinstance(got, list) and len(got) == 2 else (None, None)
        growth = job["largest_batch"] / job["batch"]
        return cls(how, nodes, (want[0], want[1]), case["cluster"]["nodes"], growth)

    @property
    def is_possible(self) -> bool:
        """One of the answers, on nodes that the cluster has."""
        return self.how in SCALINGS and type(self.nodes) is int and 1 <= self.nodes <= self.most

    @property
    def is_of(self) -> str:
        """The scaling that is right."""
        return self.right[0]

    @property
    def is_short(self) -> bool:
        """Fewer nodes than are right."""
        return bool(self.nodes < self.right[1])


_Plans = list[_Plan]


def _calls_one_node_scaling(plans: _Plans, wrong: _Plans) -> bool:
    return all(p.is_of == "none" and p.nodes == 1 for p in wrong)


def _leaves_out_the_last(plans: _Plans, wrong: _Plans) -> bool:
    return all(p.right[1] == p.most and p.nodes == p.most - 1 for p in wrong)


def _excludes_the_limit(plans: _Plans, wrong: _Plans) -> bool:
    return all(p.right == ("weak", p.growth) and (p.nodes == p.growth - 1 or p.how == "strong") for p in wrong)


def _gives_the_fewest(plans: _Plans, wrong: _Plans) -> bool:
    return len(wrong) > 2 and all(p.nodes <= 2 for p in plans) and all(p.nodes == 2 for p in wrong)


def _keeps_what_grew(plans: _Plans, wrong: _Plans) -> bool:
    two = all((p.how, p.nodes) == ("weak", 2) and p.is_of == "weak" for p in wrong)
    return two and all(p in wrong for p in plans if p.is_of == "weak" and p.right[1] > 2)


def _caps_strong(plans: _Plans, wrong: _Plans) -> bool:
    beyond = [p for p in plans if p.is_of == "strong" and p.right[1] > p.growth]
    return bool(beyond) and beyond == wrong and all(p.nodes <= p.growth for p in wrong)


def _takes_speedup(plans: _Plans, wrong: _Plans) -> bool:
    return len(wrong) > 2 and all((p.how, p.nodes) == ("strong", p.most) for p in wrong)


def _tries_all_nodes_alone(plans: _Plans, wrong: _Plans) -> bool:
    return len(wrong) > 2 and all(p.nodes in (1, p.most) for p in plans) and any(p.how == "weak" for p in wrong)


def _divides_weak(plans: _Plans, wrong: _Plans) -> bool:
    weak = [p for p in plans if p.is_of == "weak"]
    return len(weak) > 2 and weak == wrong and all(p.how != "weak" for p in wrong)


def _is_short_everywhere(plans: _Plans, wrong: _Plans) -> bool:
    kinds = {p.is_of for p in wrong}
    return kinds >= {"strong", "weak"} and all(p.is_short for p in wrong) and any(p.nodes > 1 for p in wrong)


def _is_long_everywhere(plans: _Plans, wrong: _Plans) -> bool:
    longer = all(not p.is_short and (p.is_of != "strong" or p.how == "strong") for p in wrong)
    return longer and "strong" in {p.is_of for p in wrong} != {"strong"}


_EFFICIENCY = "compute the efficiency: the throughput per node on P nodes, divided by that of a single node"
# What all answers together have to be like, and what is told then; a test further down may fit what one above it names.
_COMMON: tuple[tuple[Callable[[_Plans, _Plans], bool], str, str, str], ...] = (
    (
        _calls_one_node_scaling,
        "your plan treats a single node as scaling",
        "your plan is right wherever a second node is worth it; elsewhere it is not ('none', 1)",
        "return ('none', 1) if neither kind gets beyond one node",
    ),
    (
        _leaves_out_the_last,
        "your code does not try the last node of the cluster",
        "your plan is right, except where all nodes are efficient enough: there it has one node too few",
        "check your range: does it include its end?",
    ),
    (
        _excludes_the_limit,
        "your code excludes a batch of exactly largest_batch",
        "your plan is right, except where the batch of all nodes equals largest_batch",
        "allow P as long as batch × P does not exceed largest_batch",
    ),
    (
        _gives_the_fewest,
        "your plan stops at the first number of nodes that is efficient",
        "your plans never have more than two nodes; expected the largest number that is still efficient enough",
        "try all numbers up to the last node, and keep the largest that passes",
    ),
    (
        _keeps_what_grew,
        "your weak scaling stops at two nodes",
        "your strong scaling is right; perhaps the batch of the job grows from one try to the next",
        "start from the job's own batch for each number of nodes: do not change the dicts",
    ),
    (
        _caps_strong,
        "your code applies largest_batch to strong scaling",
        "with strong scaling, the batch of all nodes stays the same, however many nodes there are",
        "apply largest_batch only to weak scaling, where the batch grows with the nodes",
    ),
    (
        _takes_speedup,
        "your code does not divide the speed-up of strong scaling by the number of nodes, or accepts every speed-up",
        "every wrong plan is strong scaling on all nodes",
        _EFFICIENCY,
    ),
    (
        _tries_all_nodes_alone,
        "your code tries only one node and all nodes of the cluster",
        "every plan has one node or all nodes; the largest number that is still efficient enough may be in between",
        "find the largest number of nodes for each kind of scaling (for weak scaling, "
        "only up to largest_batch); then choose the "
        "kind that reaches more nodes, not the more efficient one",
    ),
    (
        _divides_weak,
        "your code never finds weak scaling efficient enough",
        "wherever weak scaling is right, your plan is a different one; with weak scaling, "
        "each node's share stays the same",
        "do not divide the efficiency of weak scaling by the number of nodes a second time",
    ),
    (
        _is_short_everywhere,
        "in your plans, sending costs too much with both kinds of scaling",
        "every wrong plan has too few nodes; with a single bucket, no sending is hidden",
        "pass the job's buckets to step_s",
    ),
    (
        _is_long_everywhere,
        "in your plans, a step on many nodes is too short with both kinds of scaling",
        "your wrong plans have too many nodes, never too few",
        "pass the job's buckets and the batch of all nodes "
        "(batch for strong scaling, batch × P for weak) to step_s: it "
        "divides the batch among the nodes itself, and it does not hide all sending",
    ),
)


def _scaling_mistake(job: Any, answer: Any, right: Any) -> Wrong:
    (got, nodes), (want, most) = answer, right
    then = "find the largest number of nodes for each kind of scaling, then compare the two"
    if want == "none":
        what, why = (
            "your plan chooses scaling, but a second node is not worth it here",
            "with two nodes the efficiency is already too low",
        )
    elif got == "none":
        what, why = (
            "your plan rejects scaling, but more than one node is useful here",
            f"{want} scaling with two nodes is efficient enough",
        )
    elif got == "weak":
        what, why = (
            "you chose weak scaling, but it does not reach more nodes than strong scaling here",
            "with more nodes, weak scaling is no longer efficient enough, or exceeds largest_batch",
        )
        if type(nodes) is int and nodes * job["batch"] > job["largest_batch"]:
            batch = f"{nodes} × {job['batch']} = {nodes * job['batch']}"
            why = f"the batch of your plan, {batch}, exceeds largest_batch, {job['largest_batch']}"
            then = "for weak scaling, allow P nodes only if batch × P does not exceed largest_batch"
    elif nodes == most:
        what, why = (
            "you chose strong scaling, but it does not reach more nodes than weak scaling here",
            "both kinds reach equally many nodes; in that case the answer is weak",
        )
    else:
        what, why = (
            "you chose strong scaling, but it does not reach more nodes than weak scaling here",
            "with P nodes, each node has only 1/P of the batch",
        )
    return Wrong(what, why=why, next=then)


def _nodes_mistake(case: Any, got: Any, want: Any) -> Wrong:
    how, nodes = got
    job = case["job"]
    if type(nodes) is not int or not 1 <= nodes <= case["cluster"]["nodes"]:
        what, why = (
            "your number of nodes is not possible",
            f"your function returned {say(nodes)}; the cluster has {case['cluster']['nodes']}",
        )
    elif how == "weak" and nodes * job["batch"] > job["largest_batch"]:
        what, why = "your plan's batch exceeds its limit", "P is not allowed when batch × P exceeds largest_batch"
    elif nodes > want[1]:
        what, why = (
            "with as many nodes as in your plan, the efficiency is too low",
            f"it must be at least {job['least_efficiency']}",
        )
    else:
        what, why = (
            "your plan has too few nodes: a larger number is efficient enough, too",
            f"your function returned {nodes}",
        )
    return Wrong(what, why=why, next=_EFFICIENCY)
