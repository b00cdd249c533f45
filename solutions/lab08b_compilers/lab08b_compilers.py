# %% [markdown]
# # Layouts and compilers: what a graph knows
#
# Eager PyTorch runs one operation after another and knows nothing of the next. Whoever sees the whole *graph* can do
# more: keep one layout from end to end, make one kernel of five, launch a hundred at once, try which convolution is the
# fastest. And whoever has seen a graph has to know when it no longer holds.
#
# After this lab you can
#
# * read strides, and place layouts so that the fewest bytes are moved;
# * say which operations may become one kernel, and what that saves;
# * say what `torch.compile` assumes of a call, when it compiles again, and why it splits a function;
# * capture a training step as a CUDA graph, so that a replay computes what eager mode does;
# * set the flags of cuDNN for a reproducible run, or for a fast one.
#
# **About 150 minutes.** The practice after them, `autotuner`, gives no points.
#
# No GPU is needed, and no compiler: what would be on a GPU is modelled, what a compiler did elsewhere is recorded, and
# both say so. *Write your prediction down* before you run the next cell: where there is a box (a number, with or
# without its unit, Enter), what comes out is shown beside it, and not before. Lecture slides are quoted by deck: [000]
# profiling, [001] GPU basics, [002] software perspective. `hint("guards")` gives the hints of an exercise, one at a
# time; when a check fails, `case("guards")` gives the inputs of the case that it shows.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.once_written import once_written
    from edl_labs.ui.predictions import predict, revealed
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
rounds = 30

# %%
Progress("lab08b_compilers")

# %% [markdown]
# ## A network that is slow for four reasons

# %% [markdown]
# ## 1. Strides: one tensor, two layouts

# %% [markdown]
# ## 2. Five operations, one kernel

# %% [markdown]
# ## 3. What a compiled function assumes
#
# `torch.compile` ([000]'s answer to a host that is busy launching) runs your Python once with stand-ins for tensors,
# writes down the operations, and compiles what it has. Nothing of your Python runs at the next call, so it has to know
# whether the graph still holds: with every compiled *version* it keeps **guards** on the arguments. A call whose
# arguments pass the guards of some version is a hit. One that passes none is compiled again, which takes seconds.
#
# Guards and versions are made by the front end, Dynamo, which needs no C++ compiler: so ask it. **Predict:** `f` is
# called with batches of 4, 5, 6, 7, 8, 9 and 1 rows, all else equal. How many versions does that make? And in 100
# steps whose learning rate, a float argument, is another one each time?

# %%
predict("versions_of_rows", "The seven batches make", unit="versions")
predict("versions_of_rates", "The hundred steps make", unit="versions")

# %% given
import torch

from edl_labs.bench.recompiles import watch_calls


def f(x, rate):
    return torch.relu(x) * rate


# %%
with revealed("versions_of_rows", "versions_of_rates") as truth:
    batches = [(torch.ones(rows, 3), 0.1) for rows in (4, 5, 6, 7, 8, 9, 1)]
    watched = watch_calls(f, batches)
    for (x, _), call in zip(batches, watched, strict=True):
        print(f"{len(x)} rows: {call}")
    steps = [(torch.ones(4, 3), 0.1 / step) for step in range(1, 101)]
    of_rates = sum(not call.is_hit for call in watch_calls(f, steps))
    of_rows = sum(not call.is_hit for call in watched)
    truth(versions_of_rows=of_rows, versions_of_rates=of_rates)

# %% [markdown]
# A value that changes is compiled once more, now as a *free* one; that is the **dynamic step**. Write `Cache(lines)`,
# which stands for one compiled function, with `call(args)` → what happens at that call:
#
# | decision | when |
# |---|---|
# | `"hit"` | a version's guards all pass |
# | `"recompile"` | none do, and a version is made (the first one too) |
# | `"break"` | the same, and a line ends the graph: the version consists of pieces, with Python in between |
# | `"eager"` | none do, and there are 8 versions already: from now on such a call is not compiled |
#
# `args` is a dict of `x`, a tensor; `scale`, a float; `shift`, an int; and `verbose`, a bool. A version guards
#
# * of a **tensor** its dtype, its number of dimensions, its layout (`x.is_contiguous()`; the only other one here is a
#   transposed matrix) and each size;
# * of an **int** or a **float** its value, and of a **bool** too;
# * but a size or a number that differs from one *seen* before in the same place is free in the version that is made
#   now: any value passes. What was seen are the arguments of all calls for which a version was made. Versions that
#   are there stay as they are. A bool is never free.
# * Once calls with different numbers of dimensions have been seen, every size counts as changed.
# * A size of 1 broadcasts: a free size takes any from 2 on, and where the size is 1, the version is for 1.
#
# `lines` are what the function does to `y` after `y = x * scale + shift`, as dicts: `"code"`, and `"only_if"`, which is
# None or the name of the bool argument under which the line stands. All code there is:
#
# | | | |
# |---|---|---|
# | `y = y.relu()` | `y = y - y.mean()` | `y = y - y.mean().item()` |
# | `y = y * float(y.max())` | `y = torch.where(y > 0, y, 0)` | `if y.sum() > 0: y = y + 1` |
# | `if y.ndim == 2: y = y + 1` | `y = y * len(x)` | `print(y)` |
#
# Which of them end the graph? Those that want a number from the device, or show one, before the graph has run;
# `torch._dynamo.explain(function)(x)` tells too. Rules are torch 2.15's defaults.


# %% solve="guards"
class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        ### BEGIN SOLUTION
        self.lines, self.versions, self.seen = lines, [], {}
        ### END SOLUTION

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        ### BEGIN SOLUTION
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known
        ### END SOLUTION


# %% check="guards"
check("guards")

# %% [markdown]
# ## 4. A step for the price of one launch
#
# [000]'s host that is busy launching has another way out, [001]'s **CUDA graphs**: capture a step once, then replay all
# of its kernels with a single call. A replay knows no Python and no shapes, only *addresses*: the kernels read and
# write what they read and wrote when they were captured. `torch.compile(mode="reduce-overhead")` does this for you.
#
# `towers` is a model of an image tower and a text tower of many small kernels. **Predict** the time of one step on an
# H100 on which a launch costs the host 4 µs: twelve kernels in each tower and six in the update, 2 µs each.

# %% given
from edl_labs.virtual import VirtualGPU, VirtualMachine
from edl_labs.virtual.gpu.two_towers import TowersPlan, TwoTowers

PLAN = TowersPlan(12, 12, 5, 2e-6, 65536, 1 << 20, 1e-4)


def run_towers(train, batches):
    """A training function's program on a modelled H100, and its time in s."""
    gpu = VirtualGPU(VirtualMachine.of("H100-SXM").warm())
    towers = TwoTowers(gpu, PLAN)
    size = PLAN.batch_bytes
    inputs = [gpu.host_empty(size, pin_memory=True) for _ in range(batches)]
    train(gpu, towers, inputs)
    gpu.synchronize()
    return gpu, gpu.now_s()


def eager_train(gpu, towers, batches):
    """The loop without a graph; it keeps no losses."""
    static = gpu.empty(batches[0].nbytes)
    for batch in batches:
        gpu.copy(static, batch, non_blocking=True)
        towers.image(static)
        towers.text(static)
        towers.update()


# %%
predict("eager_step", "Launched kernel by kernel, a step takes", unit="µs")
predict("replayed_step", "Replayed as a graph, the same kernels take", unit="µs")

# %%
with revealed("eager_step") as truth:
    took = [run_towers(eager_train, batches)[1] for batches in (4, 12)]
    truth((took[1] - took[0]) / 8)

# %% [markdown]
# Write `captured_train(gpu, towers, batches)`: one training step for each batch, in order, all but the first by replays
# of one graph. `batches` are pinned buffers of the host, and what comes back is another one: the loss of every step,
# 4 bytes each, there when the function returns. At most 10 % more time than the best program will do.
#
# | call | does |
# |---|---|
# | `towers.image(batch)`, `towers.text(batch)` | a tower's kernels, in the current stream; each fills half of the SMs |
# | `towers.update()` | behind both: the loss, gradients, new weights |
# | `towers.loss` | 4 bytes on the device, written by each update |
# | `gpu.empty(n)`, `gpu.host_empty(n, pin_memory=True)` | buffers of n bytes; `buffer[4:8]` is a part of one |
# | `gpu.copy(dst, src, non_blocking=True)` | a copy, in the current stream |
# | `graph = gpu.CUDAGraph()`, `with gpu.graph(graph): ...` | captures what the block issues; nothing runs meanwhile |
# | `graph.replay()` | runs it, in the current stream |
# | `side = gpu.Stream()`, `with gpu.stream(side): ...` | another stream, and work in it |
# | `gpu.current_stream()`, `a.wait_stream(b)` | within a capture too |
# | `gpu.synchronize()` | the host waits |
#
# A capture refuses what makes the host wait and what asks for memory. A model's first call does both kinds of thing
# inside its libraries, so it must not be the captured one. A side stream takes part once it waits for the captured
# stream, and the captured stream has to wait for it before the block ends.


# %% solve="capture"
def captured_train(gpu, towers, batches):
    """One step for each batch; the buffer with their losses."""
    ### BEGIN SOLUTION
    static = gpu.empty(batches[0].nbytes)
    losses = gpu.host_empty(4 * len(batches), pin_memory=True)
    side, graph = gpu.Stream(), gpu.CUDAGraph()

    def step():
        main = gpu.current_stream()
        side.wait_stream(main)
        with gpu.stream(side):
            towers.text(static)
        towers.image(static)
        main.wait_stream(side)
        towers.update()

    def train_on(at, run):
        gpu.copy(static, batches[at], non_blocking=True)
        run()
        gpu.copy(losses[4 * at : 4 * at + 4], towers.loss, non_blocking=True)

    train_on(0, step)
    with gpu.graph(graph):
        step()
    for at in range(1, len(batches)):
        train_on(at, graph.replay)
    gpu.synchronize()
    return losses
    ### END SOLUTION


# %% check="capture"
check("capture")

# %%
with once_written("capture"), revealed("replayed_step") as truth:
    runs = [run_towers(captured_train, batches) for batches in (4, 12)]
    truth((runs[1][1] - runs[0][1]) / 8)
    gpu = runs[0][0]
    axes = gpu.timeline.plot()

# %% [markdown]
# Launches cost more than the kernels took; now the device sets the pace, and beside each other the towers take half of
# theirs. That the first step ran without the graph is no flaw: warming up *trains*, so it needs a batch of its own. And
# the static buffers are the price: who forgets to fill one trains on the last batch again, without any error.

# %% [markdown]
# ## 5. Reproducible, or fast?

# %% [markdown]
# ## 6. The network, mended

# %% [markdown]
# ## Practice: which kernel is the fastest here?

# %% [markdown]
# ## Where you are

# %%
Progress("lab08b_compilers")
