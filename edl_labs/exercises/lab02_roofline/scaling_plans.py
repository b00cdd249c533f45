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
            why = f"they are {', '.join(SCALINGS)}"
            raise Wrong(f"{got[0][:20]!r} is not one of the three answers", why=why, next="return one of them")
        if got[0] != want[0]:
            raise _scaling_mistake(got, want)
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


_EFFICIENCY = "efficiency: throughput of one node among many, over its throughput alone"
# What all answers together have to be like, and what is told then; a test further down may fit what one above it names.
_COMMON: tuple[tuple[Callable[[_Plans, _Plans], bool], str, str, str], ...] = (
    (
        _calls_one_node_scaling,
        "one node alone is not scaling",
        "right wherever a second node is worth it; where none is, another answer than ('none', 1) came back",
        "say none where neither kind gets beyond one node",
    ),
    (
        _leaves_out_the_last,
        "the last node of the cluster was not tried",
        "right but where all nodes are efficient enough: there one fewer came back",
        "range leaves its end out",
    ),
    (
        _excludes_the_limit,
        "a batch of exactly largest_batch is allowed",
        "right but where the batch of all nodes is as large as largest_batch",
        "P is allowed as long as batch × P does not exceed it",
    ),
    (
        _gives_the_fewest,
        "the first number of nodes that is efficient came back",
        "no plan goes beyond two nodes; asked are the most that are still efficient enough",
        "go on to the last node, and keep the largest number that passes",
    ),
    (
        _keeps_what_grew,
        "weak scaling stopped at two nodes",
        "strong scaling is right; does the batch of the job grow from one try to the next?",
        "each number of nodes begins with the job's own batch: leave the dicts as they are",
    ),
    (
        _caps_strong,
        "largest_batch was applied to strong scaling",
        "there the batch of all nodes stays what it is, however many they are",
        "only weak scaling lets the batch grow with the nodes",
    ),
    (
        _takes_speedup,
        "the speed-up of strong scaling was not divided by the nodes, or every speed-up passed",
        "strong scaling on all nodes came back wherever the plan is wrong",
        _EFFICIENCY,
    ),
    (
        _tries_all_nodes_alone,
        "only all nodes of the cluster were tried",
        "every plan has one node or all of them; the most that are efficient enough may be in between",
        "find the most nodes for each kind of scaling, weak only as far as largest_batch allows; the kind that reaches "
        "further wins, not the more efficient one",
    ),
    (
        _divides_weak,
        "weak scaling never came out as efficient",
        "wherever it is right, another plan came back: its batch grows with the nodes, and each node's share stays",
        "do not divide its efficiency by the nodes a second time",
    ),
    (
        _is_short_everywhere,
        "sending costs too much in this plan, with both kinds of scaling",
        "too few nodes came back wherever the plan is wrong; in one bucket nothing is hidden",
        "hand the job's buckets on to step_s",
    ),
    (
        _is_long_everywhere,
        "a step of many nodes is too short in this plan, with both kinds of scaling",
        "too many nodes came back wherever the plan is wrong",
        "step_s divides the batch by the nodes itself, and not all sending is hidden: give it the job's buckets and "
        "the batch of all nodes, batch for strong scaling and batch × P for weak",
    ),
)


def _scaling_mistake(answer: Any, right: Any) -> Wrong:
    (got, nodes), (want, most) = answer, right
    if want == "none":
        what, why = "a second node is not worth it here", "with two nodes the efficiency is already too low"
    elif got == "none":
        what, why = "more than one node is of use here", f"{want} scaling with two nodes is efficient enough"
    elif got == "weak":
        what, why = "weak scaling does not reach further here", "look at largest_batch, and at the efficiency"
    elif nodes == most:
        what, why = "strong scaling does not reach further here", "both reach equally far: then the answer is weak"
    else:
        what, why = "strong scaling does not reach further here", "with P nodes, a node has a P-th of the batch left"
    return Wrong(what, why=why, next="find the most nodes for each kind of scaling, then compare")


def _nodes_mistake(case: Any, got: Any, want: Any) -> Wrong:
    how, nodes = got
    job = case["job"]
    if type(nodes) is not int or not 1 <= nodes <= case["cluster"]["nodes"]:
        what, why = (
            "there are not that many nodes",
            f"{say(nodes)} came back; the cluster has {case['cluster']['nodes']}",
        )
    elif how == "weak" and nodes * job["batch"] > job["largest_batch"]:
        what, why = "the batch has outgrown its limit", "P is not allowed when batch × P exceeds largest_batch"
    elif nodes > want[1]:
        what, why = "the efficiency is too low with that many nodes", f"it must be at least {job['least_efficiency']}"
    else:
        what, why = "more nodes are efficient enough", f"{nodes} came back"
    return Wrong(what, why=why, next=_EFFICIENCY)
