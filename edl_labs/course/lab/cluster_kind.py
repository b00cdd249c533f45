"""What `new --kind cluster` writes: gradients that are summed over ranks while others are still computed.

`@name@`, `@class@` and words such as `@u@` are filled in, as in exercise_kinds; no solution is here as it is written.
"""

from __future__ import annotations

CELLS = '''\

# %% [markdown]
# ## @heading@
#
# Each rank computes the gradients of a few layers, one kernel a layer, and all ranks need their sums. **Predict:** how
# much of the sending can hide behind kernels, if kernel and message take equally long and there are four layers?
#
# Write `@name@(dist, backward, gradients)`: for each layer `i`, from 0, run `backward(i)`, which writes `gradients[i]`,
# and sum that tensor over all ranks with `dist.all_reduce`. The update runs right after your function.


# %% solve="@name@"
def @name@(dist, backward, gradients):
    """Compute and sum the gradients of all layers; all sums are there on return."""
    ### BEGIN SOLUTION
    @u@s = []
    for @l@, gradient in enumerate(gradients):
        backward(@l@)
        @u@s.append(dist.all_reduce(gradient, async_op=True))
    for @u@ in @u@s:
        @u@.wait()
    ### END SOLUTION


# %% check="@name@"
check("@name@")
'''
TOML = """\

[[exercise]]
name = "@name@"
points = 1
hints = [
  "When can the sum of a layer begin? And who needs it?",
  "async_op=True gives a work back at once, and the stream goes on. Its wait() comes when somebody needs the sum.",
]
"""
WRONG = {
    "blocks": """\
# exercise: @name@
# told: kernels wait for sums that nobody needs yet


def @name@(dist, backward, gradients):
    for @l@, gradient in enumerate(gradients):
        backward(@l@)
        dist.all_reduce(gradient)
""",
    "never_waits": """\
# exercise: @name@
# told: the update reads sums that are still on their way


def @name@(dist, backward, gradients):
    for @l@, gradient in enumerate(gradients):
        backward(@l@)
        dist.all_reduce(gradient, async_op=True)
""",
}
MODULE = '''\


@exercise("@name@")
class @class@:
    """Sums over ranks that hide behind kernels. The evidence is the programs of all ranks."""

    form: ClassVar[Any] = {"programs": ""}

    def cases(self, rng: Any) -> Any:
        """Numbers of ranks and layers, elements and seconds of a layer, and links."""
        return [
            {
                "ranks": ranks,
                "layers": int(rng.integers(3, 7)),
                "elements": int(rng.integers(1, 5)) * 1_000_000,
                "kernel_s": float(rng.uniform(1e-3, 3e-3)),
                "byte_per_s": float(rng.uniform(3e9, 9e9)),
            }
            for ranks in (2, 4, 8)
        ]

    def probe(self, student: Any, case: Any) -> Any:
        """The programs that the ranks issue, with the update at their end."""

        def program(dist: Any) -> None:
            batch = dist.tensor(1, name="batch")
            gradients = [dist.tensor(case["elements"], name=f"gradient {i}") for i in range(case["layers"])]

            def backward(layer: int) -> None:
                name, kernel_s = f"backward {layer}", case["kernel_s"]
                dist.launch(name, duration_s=kernel_s, reads=batch, writes=gradients[layer])

            student.@name@(dist, backward, list(gradients))
            dist.launch("update", duration_s=case["kernel_s"], reads=gradients)

        return {"programs": written_programs(VirtualCluster(self.machine(case)).record(program))}

    def public(self, case: Any, want: Any) -> Any:
        """The time of the reference, which a golden may hold; its programs would be the answer."""
        return {"makespan_s": replayed_programs(want["programs"], self.machine(case)).makespan_s}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        """What was computed, sent and waited for, and how long it took, all from a replay of the programs."""
        machine = self.machine(case)
        run = replayed_programs(got["programs"], machine)
        require_calls(run, ("all_reduce",))
        require_end(run)
        names = [f"backward {layer}" for layer in range(case["layers"])] + ["update"]
        for rank, program in enumerate(run.programs):
            kernels = [(entry["name"], entry.get("duration_s")) for entry in program if entry["op"] == "launch"]
            if kernels != [(name, case["kernel_s"]) for name in names]:
                why = f"rank {rank} runs {', '.join(str(name) for name, _ in kernels)[:80]}"
                raise Wrong("not every layer is computed once, in order", why=why, next='hint("@name@")')
        if run.races:
            then = "wait for every work before you come back"
            raise Wrong("the update reads sums that are still on their way", why=str(run.races[0]), next=then)
        for layer in range(case["layers"]):
            counts = [term.count for part in run.contents(0, 1 + layer) for term in part.terms]
            if counts != [1.0] * case["ranks"]:
                why = f"gradients of layer {layer} hold {len(counts)} ranks' parts, of {case['ranks']}"
                raise Wrong("a layer is not summed once over all ranks", why=why, next='hint("@name@")')
        best_s = want.get("makespan_s") or replayed_programs(want["programs"], machine).makespan_s
        if run.makespan_s > 1.02 * best_s:
            why = f"it takes {run.makespan_s / best_s:.2f} times as long as it has to"
            raise Wrong("kernels wait for sums that nobody needs yet", why=why, next='hint("@name@")')

    @staticmethod
    def machine(case: Any) -> ClusterMachine:
        """The cluster of a case."""
        return ClusterMachine.flat(case["ranks"], alpha_s=2e-5, byte_per_s=case["byte_per_s"])
'''
IMPORTS = (
    "from typing import Any, ClassVar",
    "from edl_labs.checks import Wrong, exercise",
    "from edl_labs.exercises.cluster_programs import replayed_programs, require_calls, require_end, written_programs",
    "from edl_labs.virtual.cluster import ClusterMachine, VirtualCluster",
)
