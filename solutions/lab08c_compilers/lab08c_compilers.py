# %% [markdown]
# # Compilers: guards and captures
#
# A compiler for PyTorch runs your Python once, records the operations, and from then on runs the compiled record. A
# system that records a step has to know when the record is no longer valid: when the length, the learning rate or an
# address changes. This lab is about such records, and about the flags that let a library choose an algorithm.
#
# After this lab you can
#
# * say what `torch.compile` assumes about a call, when it compiles again, and why it splits a function;
# * capture a training step as a CUDA graph, so that a replay computes what eager mode does;
# * set the flags of cuDNN for a reproducible run, or for a fast one;
# * say how much a compiler speeds up a network, and after how many calls the compile time has paid off.
#
# **About 141 minutes (estimated)**. Practice carries no points; it takes another 45 minutes (estimated), and its
# sections can be done in any order.
#
# | exercise | `guards` | `capture` | `flags` |
# |---|---|---|---|
# | section | 1 | 2 | 3 |
# | minutes | 63 | 39 | 39 |
#
# | practice | `autotuner` | `whole_graph` |
# |---|---|---|
# | minutes | 29 | 16 |
#
# You need neither a GPU nor a compiler: GPU times are modelled, compiler results come from a recording, and both are
# labelled. *Write your prediction down* before you run the next cell. Where there is a box, type a number, with or
# without its unit, and press Enter; the result appears next to it only then. Lecture slides are quoted by deck: [000]
# optimizing training pipelines, [001] course introduction, [002] software perspective. `hint("guards")` gives the hints
# of an exercise, one at a time. When a check fails, `case("guards")` returns the inputs of the case that it shows.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.in_torch import in_torch
    from edl_labs.ui.requires_solution import requires_solution
    from edl_labs.ui.predictions import Instead, predict, reveal_prediction
    from edl_labs.units import seconds
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
compile_here = True
compare_s = 4.0

# %%
Progress("lab08c_compilers")

# %% [markdown]
# ## A network that is slow for four reasons
#
# This network is correct, but it has four slow habits that are common in real code. It reads a number back to the host
# in every block (`checks`), scales its channels one by one (`loops`), has a convolution whose algorithm was never tuned
# (`unfolds`), and converts to another layout and back in every block (`copies`). You can switch off any of them without
# changing the result.

# %% given
import torch
import torch.nn.functional as F


def block(x, weight, scale, *, checks=True, loops=True, unfolds=True, copies=True):
    """Convolution, norm over channels, scale and ReLU; x is N x C x H x W."""
    if unfolds:
        columns = F.unfold(x, 3, padding=1)
        x = (weight.flatten(1) @ columns).view(x.shape)
    else:
        x = F.conv2d(x, weight, padding=1)
    x = x.permute(0, 2, 3, 1)
    x = F.layer_norm(x.contiguous() if copies else x, x.shape[3:])
    x = x.permute(0, 3, 1, 2)
    x = x.contiguous() if copies else x
    if loops:
        channels = range(len(scale))
        x = torch.stack([x[:, channel] * scale[channel] for channel in channels], 1)
    else:
        x = x * scale[:, None, None]
    if checks and x.max().item() > 1e4:
        x = x / 2
    return x.relu()


def network(x, weights, **switches):
    """A block for each pair of a convolution's weight and a scale."""
    for weight, scale in weights:
        x = block(x, weight, scale, **switches)
    return x


def inputs(layout):
    """A batch and the weights of two blocks, all in one memory format."""
    made = torch.Generator().manual_seed(8)
    weights = [torch.randn(24, 24, 3, 3, generator=made) / 15 for _ in range(2)]
    x = torch.randn(4, 24, 20, 20, generator=made).to(memory_format=layout)
    return x, [(one.to(memory_format=layout), torch.ones(24)) for one in weights]


# %% [markdown]
# Two of the four belong to this lab: the checks, which split the compiler's graph, and the convolution, whose algorithm
# a flag decides. The loops and the copies are the topic of lab08b; here they are only switched off. How much does each
# cost on this machine? You will predict and measure that in section 4.

# %% [markdown]
# ## 1. What a compiled function assumes
#
# ```text
# call f(x, rate)
#    │
#    ▼
# version 1: is x fp32 and 4 × 3? is rate 0.1? ── yes ──▶ run what was compiled: a hit
#    │ no
#    ▼
# version 2: its own questions ─────────────────── yes ──▶ run what was compiled: a hit
#    │ no
#    ▼
# run the Python with stand-ins for tensors, note the operations, compile them (seconds): version 3
# ```
#
# `torch.compile` is [000]'s answer to a host that is busy launching. (The deck also names TorchScript, which is
# deprecated.) `torch.compile` runs your Python once with stand-ins for tensors, records the operations in a graph,
# and compiles the graph. Your Python does not run at the next call, so the compiler has to know whether the graph is
# still valid: with every compiled *version* it keeps **guards** on the arguments. A call whose arguments pass all
# guards of some version is a hit. If no version fits, the function is compiled again, which takes seconds.
#
# The front end, Dynamo, makes the guards and versions. It needs no C++ compiler, so you can try it here. **Predict:**
# `f` is called with batches of 4, 5, 6, 7, 8, 9 and 1 rows, all else equal. How many versions does that make? And how
# many do 100 steps make if the learning rate, a float argument, changes at each step?

# %%
predict("versions_of_rows", "The seven batches make", unit="versions")
predict("versions_of_rates", "The hundred steps make", unit="versions")

# %% given
from edl_labs.bench.recompiles import watch_calls


def f(x, rate):
    return torch.relu(x) * rate


# %%
with reveal_prediction("versions_of_rows", "versions_of_rates") as truth:
    batches = [(torch.ones(rows, 3), 0.1) for rows in (4, 5, 6, 7, 8, 9, 1)]
    watched = watch_calls(f, batches)
    for (x, _), call in zip(batches, watched, strict=True):
        print(f"{len(x)} rows: {call}")
    steps = [(torch.ones(4, 3), 0.1 / step) for step in range(1, 101)]
    of_rates = sum(not call.is_hit for call in watch_calls(f, steps))
    of_rows = sum(not call.is_hit for call in watched)
    truth(versions_of_rows=of_rows, versions_of_rates=of_rates)

# %% [markdown]
# When a value has changed, the function is compiled once more, and the new version accepts any value in that place: the
# value is *free*. PyTorch calls this **dynamic**. Write `Cache(lines)`, which stands for one compiled function, with
# `call(args)` → what happens at that call:
#
# | decision | when |
# |---|---|
# | `"hit"` | all guards of some version pass |
# | `"recompile"` | no version fits, and a new version is made (also at the first call) |
# | `"break"` | a new version is made, and a line ends the graph: the version is in pieces, with Python in between |
# | `"eager"` | no version fits, and there are already 8 versions: such a call is no longer compiled |
#
# `args` is a dict of `x`, a tensor; `scale`, a float; `shift`, an int; and `verbose`, a bool. The rules for guards are:
#
# * For a **tensor**, a version guards the dtype, the number of dimensions, the layout (`x.is_contiguous()`; the only
#   other layout here is a transposed matrix) and each size.
# * For an **int**, a **float** or a **bool**, it guards the value.
# * A size or a number that differs from one *seen* before in the same place is free in the new version: any value
#   passes. The values seen are the arguments of all calls for which a version was made. Existing versions do not
#   change. A bool is never free.
# * As soon as a call has a different number of dimensions than an earlier one, every size counts as changed, in that
#   call and in all later ones.
# * A size of 1 broadcasts, so it is a special case: a free size accepts 2 or more, and a version that is made for a
#   size of 1 accepts only 1 there. (No size is 0.)
#
# The function computes `y = x * scale + shift` (and `y = y + 1`, if `verbose`), then runs `lines`, and returns `y * 2`.
# Each line is a dict with two keys, `"code"` and `"only_if"`. If `"only_if"` is None, the line always runs; otherwise
# it names a bool argument, and the line runs only if that argument is true. `"code"` is always one of these:
#
# | | | |
# |---|---|---|
# | `y = y.relu()` | `y = y - y.mean()` | `y = y - y.mean().item()` |
# | `y = y * float(y.max())` | `y = torch.where(y > 0, y, 0)` | `if y.sum() > 0: y = y + 1` |
# | `if y.ndim == 2: y = y + 1` | `y = y * len(x)` | `print(y)` |
#
# Which of them end the graph? Those in which Python itself needs a number from the device, or prints one: the graph
# has to run up to there before Python can go on. `torch._dynamo.explain(function)(x)` also shows these lines. The
# rules are the defaults of torch 2.15.


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
        if any(self._fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self._guard(name, args[name]) for name in args})
        breaks = any(self._breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def _breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def _facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def _fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self._facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def _guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self._facts(value)
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
# ## 2. A step for the price of one launch
#
# There is another way to relieve a host that is busy launching: [001]'s **CUDA graphs**. Capture a step once, then
# replay all of its kernels with a single call. A replay knows neither Python nor shapes, only *addresses*: the kernels
# read and write the same memory as when they were captured. `torch.compile(mode="reduce-overhead")` does this for you.
#
# `towers` is a model with an image tower and a text tower of many small kernels: twelve in each tower, and then six
# more, one for the loss and five for the update. Each kernel takes 2 µs. A tower's kernel fills half of the SMs, so the
# two towers can run side by side in two streams. On an H100, a launch costs the host 4 µs. **Predict** the time of one
# step: launched kernel by kernel in one stream, then replayed as one graph with the towers side by side.

# %% given
from edl_labs.virtual import VirtualGPU, VirtualMachine
from edl_labs.virtual.gpu.two_towers import TowersPlan, TwoTowers

PLAN = TowersPlan(
    image_kernels=12,
    text_kernels=12,
    update_kernels=5,  # and one before them, the loss
    kernel_s=2e-6,
    batch_bytes=65536,
    workspace_bytes=1 << 20,
    init_s=1e-4,
)


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
predict("replayed_step", "Replayed, with the towers side by side, it takes", unit="µs")

# %%
with reveal_prediction("eager_step") as truth:
    took = [run_towers(eager_train, batches)[1] for batches in (4, 12)]
    truth((took[1] - took[0]) / 8)

# %% [markdown]
# Write `captured_train(gpu, towers, batches)`: one training step for each batch, in order. Run the first step without
# the graph and all others as replays of one graph. `batches` are five or more pinned host buffers. Return another
# pinned host buffer with the loss of every step, 4 bytes each; it must be complete when the function returns. The
# host may wait only once, at the very end. The whole run, including the capture, may take at most 10 % more time than
# the best program.
#
# | call | does |
# |---|---|
# | `towers.image(batch)`, `towers.text(batch)` | a tower's kernels, in the current stream; each fills half of the SMs |
# | `towers.update()` | after both towers: the loss, gradients, new weights |
# | `towers.loss` | 4 bytes on the device, written by each update |
# | `gpu.empty(n)`, `gpu.host_empty(n, pin_memory=True)` | buffers of n bytes; `buffer[4:8]` is a part of one |
# | `gpu.copy(dst, src, non_blocking=True)` | a copy, in the current stream |
# | `graph = gpu.CUDAGraph()`, `with gpu.graph(graph): ...` | captures what the block issues; nothing runs meanwhile |
# | `graph.replay()` | runs the graph in the current stream |
# | `side = gpu.Stream()`, `with gpu.stream(side): ...` | another stream, and work in it |
# | `gpu.current_stream()`, `a.wait_stream(b)` | as in torch, also within a capture |
# | `gpu.synchronize()` | the host waits |
#
# A capture refuses any call that makes the host wait. Here, as in bare CUDA, it also refuses any call that asks the
# driver for memory. (In PyTorch, a tensor that is allocated during a capture comes from the graph's own pool: that
# works, but the next replay overwrites it.) A model's first call makes the host wait and asks for memory, inside the
# libraries that it uses, so you cannot capture the first call. A side stream joins the capture when it waits for the
# captured stream, and the captured stream has to wait for the side stream before the block ends.


# %% solve="capture"
def captured_train(gpu, towers, batches):
    """Train one step on each batch; return the buffer with the losses."""
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
from edl_labs.plots import style

with requires_solution("capture"), reveal_prediction("replayed_step") as truth:
    runs = [run_towers(captured_train, batches) for batches in (4, 12)]
    truth((runs[1][1] - runs[0][1]) / 8)
    gpu = runs[0][0]
    axes = style.subplots(figsize=(9, 3.4))[1]
    gpu.timeline.plot(
        axes, title="The first step is launched, three are replayed (modelled)"
    )

# %% [markdown]
# The host works (green) while the model's first call sets up its libraries. Then the host's row shows a launch for each
# kernel of the first step, the capture, and a single call for each replay. Below it, one stream runs the image tower
# and the update, and the other runs the text tower.
#
# Before, the launches took longer than the kernels. Now the device sets the pace, and the towers run side by side in
# half the time. The first step has to run without the graph: the warm-up *trains*, so it needs a batch of its own. The
# price is static buffers: if you forget to fill one, the step trains on the previous batch again, without any error.

# %% [markdown]
# **The same in torch.** `gpu.CUDAGraph()` is `torch.cuda.CUDAGraph()`, `gpu.graph(graph)` is `torch.cuda.graph(graph)`,
# and `graph.replay()` has the same name. The static input is a tensor that you fill with `copy_`. Run the warm-up in a
# side stream, since autograd remembers the stream in which it ran.


# %%
def small_kernels(x):
    """A step of 24 kernels, each shorter than a launch."""
    for _ in range(24):
        x.mul_(1.0)


# %%
def capture_in_torch():
    """The step, launched and replayed."""
    x, graph = torch.ones(256, device="cuda"), torch.cuda.CUDAGraph()
    current, warm_up = torch.cuda.current_stream(), torch.cuda.Stream()
    warm_up.wait_stream(current)
    with torch.cuda.stream(warm_up):
        small_kernels(x)  # the first call sets up libraries
    current.wait_stream(warm_up)
    with torch.cuda.graph(graph):
        small_kernels(x)
    return {"launched": lambda: small_kernels(x), "replayed": graph.replay}


# %%
in_torch(
    capture_in_torch,
    told="modelled H100, a step of the towers: eager 127 µs, captured 40.2 µs",
)

# %% [markdown]
# ## 3. Reproducible, or fast?
#
# When many blocks of a kernel add to a gradient with `atomicAdd`, they add in the order in which they arrive ([002]),
# and floating-point addition is not associative. **Predict:** 256 blocks each add one number, the sum of their own
# normally distributed values, to the same total in fp32. This is repeated with the blocks in 100 random orders. How
# many different totals come out?

# %%
predict("different_sums", "The hundred orders give", unit="different sums")

# %%
with reveal_prediction("different_sums") as truth:
    generator = torch.Generator().manual_seed(8)
    parts = torch.randn(256, 1000, generator=generator).sum(1)
    orders = [torch.randperm(256, generator=generator) for _ in range(100)]
    sums = {float(parts[order].numpy().cumsum()[-1]) for order in orders}
    print(f"from {min(sums)!r} to {max(sums)!r}")
    truth(len(sums))

# %% [markdown]
# Flags restrict which algorithms a library may choose. Here is [002]'s list, with torch's defaults:

# %%
cudnn = torch.backends.cudnn
print(f"cuDNN is available: {cudnn.is_available()}, version: {cudnn.version()}")
print(f"torch.backends.cudnn.enabled = {cudnn.enabled}")
print(f"torch.backends.cudnn.benchmark = {cudnn.benchmark}")
print(f"torch.backends.cudnn.deterministic = {cudnn.deterministic}")
print(f"torch.backends.cudnn.allow_tf32 = {cudnn.allow_tf32}")
print(
    f"torch.backends.cuda.matmul.allow_tf32 = {torch.backends.cuda.matmul.allow_tf32}"
)
everywhere = torch.are_deterministic_algorithms_enabled()
print(f"torch.use_deterministic_algorithms: {everywhere}")

# %% [markdown]
# With `cudnn.benchmark`, the first call of a convolution with a new size, dtype or layout tries up to ten algorithms
# (`benchmark_limit`; 0 means all) and keeps the fastest. [001] measured the gain for 64 filters of 3x3 on a batch of 32
# with 64 channels of 64x64:
#
# | | default | `benchmark = True` |
# |---|---|---|
# | forward | 1430 µs | 840 µs |
# | forward and backward | 2870 µs | 2260 µs |
#
# `cudnn.deterministic` excludes cuDNN's algorithms with atomic adds. `torch.use_deterministic_algorithms(True)` does
# the same for all of torch, and raises an error if an operation has no other algorithm; for cuBLAS it requires
# `CUBLAS_WORKSPACE_CONFIG=:4096:8` in the environment. No flag affects *random numbers*, either in your program or in
# the processes that load its data.
#
# `allow_tf32` lets tensor cores round the inputs of fp32 products to 10 bits of significand (fp32 has 23) before they
# multiply; sums stay in fp32.

# %% [markdown] explain="flags"
# **Explain (read by your instructor).** (a) A test trains the same network for 200 steps every night, on the same
# machine and software, and compares the weights bit by bit with yesterday's. Which of the flags above do you set, to
# which values and why, and what else do you need? (b) A run of one week trains on images of one size with one batch
# size, and should be fast. Which flags do you set now? Its validation runs the forward pass on images of 500 different
# sizes, 10 batches of each, and trying a convolution's algorithms takes 30 ms for each new size. Using [001]'s figures
# for a convolution, what does `benchmark` gain or lose in validation, and what do you do about it? (c) A colleague
# turns TF32 off "because it is not reproducible". What is right about that, and what is not?
# %% [markdown]
# ## 4. The network, fixed
#
# Back to the slow network. First remove the checks, then leave the convolution to the library: these two belong to this
# lab. Then remove the loops and copies as in lab08b: one line of torch for the loop, one layout (`channels_last`) from
# end to end. **Predict** for each step: what percentage of the previous step's time is left on this machine?

# %%
predict("left_checks", "Removing the checks leaves", unit="%")
predict("left_unfolds", "The library's convolution then leaves", unit="%")
predict("left_known", "Removing the loops and copies then leaves", unit="%")

# %%
predict(
    "worst_reason",
    "On this machine, most time is saved by fixing",
    choices=("the checks", "the convolution", "the loops and copies"),
)
predict("mended_times", "With all four fixed, the speed-up here is", unit="times")

# %% given
from edl_labs.bench import compare

STEPS = (("checks",), ("unfolds",), ("loops", "copies"))
NAMES = ("checks", "unfolds", "known")
REASONS = ("the checks", "the convolution", "the loops and copies")
VERSIONS = ("slow", "no checks", "library's convolution", "no loops, one layout")


def steps_of(measured):
    """What is left after each step, and whether the intervals are disjoint."""
    rows = [(1.0, 1.0, 1.0)] + [(one.low, one.ratio, one.high) for one in measured.rows]
    pairs = list(zip(rows, rows[1:], strict=False))
    left = [new[1] / old[1] for old, new in pairs]
    return left, [new[2] < old[0] or old[2] < new[0] for old, new in pairs]


def without(upto):
    """The switches of the network after the first `upto` steps."""
    return dict.fromkeys((flaw for step in STEPS[:upto] for flaw in step), False)


def mended(upto):
    """The network after the first `upto` steps, as a function."""
    x, weights = inputs(torch.channels_last if upto == 3 else torch.contiguous_format)
    return torch.no_grad()(lambda: network(x, weights, **without(upto)))


def close(one, two):
    return torch.allclose(one, two, atol=1e-4)


def modelled_s(
    side, *, graph=False, checks=True, loops=True, unfolds=True, copies=True
):
    """Seconds of a block of 32 x 64 channels on a modelled V100."""
    gpu = VirtualGPU(VirtualMachine.of("V100-16GB").warm())
    size, captured = 4 * 32 * 64 * side * side, gpu.CUDAGraph()
    convolution_s = (1430e-6 if unfolds else 840e-6) * (side / 64) ** 2
    moved = dict.fromkeys(("there", "norm", "back") if copies else ("norm",), 2 * size)
    moved |= {f"scale {part}": 2 * size // 64 for part in range(64 * loops)}
    moved |= {"stack or scale": 2 * size, "relu": 2 * size}

    def launch_blocks():
        for _ in range(4):
            gpu.launch("convolution", duration_s=convolution_s)
            for name, nbytes in moved.items():
                gpu.launch(name, moved_bytes=nbytes)
            if checks:
                gpu.launch("max", moved_bytes=size)
                gpu.item(gpu.empty(4))

    if graph:
        with gpu.graph(captured):
            launch_blocks()
    began_s = gpu.now_s()
    captured.replay() if graph else launch_blocks()
    gpu.synchronize()
    return (gpu.now_s() - began_s) / 4


# %%
with reveal_prediction("left_checks", "left_unfolds", "left_known") as truth:
    versions = {name: mended(upto) for upto, name in enumerate(VERSIONS)}
    measured = compare(versions, budget_s=compare_s, equal=close)
    left, is_clear = steps_of(measured)
    print(measured)
    for at, name in enumerate(VERSIONS[1:]):
        share = modelled_s(64, **without(at + 1)) / modelled_s(64, **without(at))
        here = f"{left[at]:.0%} left here" if is_clear[at] else "too close to tell here"
        print(f"{name}: {here}, {share:.0%} modelled on a V100")
        known = left[at] if is_clear[at] else Instead(share, "modelled on a V100")
        truth(**{f"left_{NAMES[at]}": known})

# %%
with reveal_prediction("worst_reason", "mended_times") as truth:
    ratios = [1.0, *(row.ratio for row in measured.rows)]
    saved = [ratios[at] - ratios[at + 1] for at in range(3)]
    most = saved.index(max(saved))
    whole = modelled_s(64) / modelled_s(64, **without(3))
    print(f"modelled on a V100: {whole:.1f} times as fast")
    if is_clear[most]:
        truth(worst_reason=REASONS[most])
    else:
        print("too close to tell: the largest saving is within the uncertainty")
    is_known = measured.rows[-1].verdict != "inconclusive"
    truth(mended_times=1 / ratios[3] if is_known else Instead(whole, "modelled"))

# %% [markdown]
# A CPU and a GPU are not slow for the same reasons. On the modelled GPU, the host issues the loop's 64 launches while
# the convolution runs, which hides them. They cost time only if a read waits for the device, or if kernels are
# shorter than a launch. On a CPU, each operation of the loop adds to the time. If the CPU is busy with other
# programs, the intervals around the ratios are wide, and a ratio may mean little. So fix things in the order that a
# profile suggests, not in the order of a list.
#
# Fix one of the four by hand: write the loop over channels as one line of torch, in `scaled` below. Then run both
# cells.


# %%
def scaled(x, scale):
    """Each channel times its own scale. Change it: one line, no loop."""
    return torch.stack([x[:, at] * scale[at] for at in range(len(scale))], 1)


# %%
features, scales = torch.randn(4, 24, 20, 20), torch.rand(24)


def one_by_one():
    channels = range(len(scales))
    return torch.stack([features[:, at] * scales[at] for at in channels], 1)


def yours():
    return scaled(features, scales)


print("the same values:", torch.equal(one_by_one(), yours()))
print(compare({"one by one": one_by_one, "yours": yours}, budget_s=compare_s / 4))

# %% [markdown]
# With images of 8 x 8 pixels, kernels are shorter than a launch. **Predict** for the modelled GPU, with the loops but
# without the checks: if a block is replayed as a graph instead of being launched kernel by kernel, what percentage of
# its time remains?

# %%
predict("replayed_loops", "When replayed, a block with its loops takes", unit="%")

# %%
with reveal_prediction("replayed_loops") as truth:
    for name, upto in (("with the loops", 0), ("all fixed", 3)):
        switches = {**without(upto), "checks": False}
        took_s = [modelled_s(8, graph=graph, **switches) for graph in (False, True)]
        print(f"modelled, {name}: {seconds(took_s[0])}, replayed {seconds(took_s[1])}")
        if not upto:
            truth(took_s[1] / took_s[0])

# %% [markdown]
# A graph makes launches cheap, but it moves just as many bytes; only fusion reduces those. And with the checks there
# would be no graph at all, since a capture refuses to wait.
#
# What does a compiler see?

# %%
x, ((weight, scale), _) = inputs(torch.contiguous_format)


def mended_block(x, weight, scale):
    return block(x, weight, scale, **without(3))


for function in (block, mended_block):
    for call in watch_calls(function, [(x, weight, scale)] * 2):
        print(f"{function.__name__}: {call}")

# %% [markdown]
# A check ends the graph in every block, so nothing is fused across it. What does compiling gain, and what does it cost?
# If this machine has a C++ compiler (see `edl-labs doctor`), both networks are compiled here, which takes up to two
# minutes; otherwise you see the results of another machine. **Predict** for the fixed network: what percentage of eager
# mode's time does a warm call take? The first, cold call compiles; after how many calls has it paid off?

# %%
from edl_labs.bench.compiled_runs import compiled_run

predict("warm_share", "Compiled and warm, the fixed network takes", unit="%")
predict("cold_paid", "The first call has paid off after", unit="calls")

# %%
with reveal_prediction("warm_share", "cold_paid") as truth:
    print("compiling ..." if compile_here else "from a recording:")
    for at, name in enumerate(("slow", "fixed")):
        where = {"recorded": ("cpu_compiled_network", at), "here": compile_here}
        run = compiled_run(mended(3 * at), budget_s=compare_s, equal=close, **where)
        print(f"{name}: {run}")
    paid = run.paid_after or float("inf")
    truth(warm_share=run.warm_s / run.eager_s, cold_paid=paid)
    if run.low <= 0 or run.high == float("inf"):  # too few rounds to decide anything
        run = compiled_run(mended(3), budget_s=0.0, **{**where, "here": False})
        share, paid = run.warm_s / run.eager_s, run.paid_after or float("inf")
        truth(warm_share=Instead(share, "recorded"))
        truth(cold_paid=Instead(paid, "recorded"))

# %% [markdown]
# The first call pays for the compiler: seconds, against milliseconds for each later call. That is worth it for a
# training run, but not for a script that calls the network ten times. In the slow network, the compiler removes the
# cost of the loops, which it fuses. It cannot remove the checks, and it does not change an algorithm: `unfold` stays
# `unfold`.

# %% [markdown]
# ## Practice: which kernel is the fastest here?
#
# `cudnn.benchmark` tries the candidates for a convolution and keeps the fastest. `torch.compile(mode="max-autotune")`
# does the same for matrix products, and Triton's `autotune` for kernels of your own. [002] warns you to set this flag
# only if the input sizes of a model do not change. **Predict** for the forward pass of [001]'s convolution: if trying
# all algorithms costs as much as ten calls of the slow one, after how many calls has the trial paid for itself?

# %%
predict("paid_after", "The trial has paid off after", unit="calls")

# %%
with reveal_prediction("paid_after") as truth:
    truth(-(-10 * 1430 // (1430 - 840)))

# %% [markdown]
# Write `Autotuner(candidates, gpu)` with `run(problem)`, which computes a problem with one of the candidates. Each
# candidate is a function of a problem: it launches its kernel on `gpu`, a VirtualGPU, and does not wait. The first
# candidate is the default. A problem is a dict of `shape` (a list), `dtype` and `layout` (strings), and the fastest
# candidate depends on all three. Assume that a problem that has occurred four times will occur often: its fourth call
# is the trial. A problem that occurs three times or fewer is not worth a trial. The first launch of a kernel loads
# it, which takes 400 µs. Read the clock with `gpu.now_s()`; the host waits with `gpu.synchronize()`.
#
# A trial may compute its problem several times, with any candidates; each problem has one trial. Every other call is
# one launch, and the host does not wait. A sequence of calls may take at most 10 % more time than it would with a
# good tuner.


# %% solve="autotuner"
class Autotuner:
    """Runs problems, and learns what is fastest for those that come often."""

    def __init__(self, candidates, gpu):
        ### BEGIN SOLUTION
        self.candidates, self.gpu = candidates, gpu
        self.calls, self.fastest = {}, {}
        ### END SOLUTION

    def run(self, problem):
        """Computes a problem."""
        ### BEGIN SOLUTION
        key = (tuple(problem["shape"]), problem["dtype"], problem["layout"])
        self.calls[key] = self.calls.get(key, 0) + 1
        if self.calls[key] == 4:
            took = [self.time(candidate, problem) for candidate in self.candidates]
            self.fastest[key] = self.candidates[took.index(min(took))]
        else:
            self.fastest.get(key, self.candidates[0])(problem)

    def time(self, candidate, problem):
        candidate(problem)
        self.gpu.synchronize()
        start_s = self.gpu.now_s()
        candidate(problem)
        self.gpu.synchronize()
        return self.gpu.now_s() - start_s
        ### END SOLUTION


# %% check="autotuner"
check("autotuner")

# %% [markdown]
# ## Practice: three pieces, fixed
#
# A colleague's function scales `x` down if its largest value is above a bound, takes one of two branches depending on
# the sign of the sum, and prints the largest value. **Predict:** in how many graphs does a call of it run?

# %%
predict("pieces", "A call to it runs", unit="graphs")


# %% given
def three_pieces(x, bound):
    """x within the bound, without negative values or the mean; the peak of x."""
    peak = x.abs().max().item()
    if peak > bound:
        x = x * (bound / peak)
    y = x.relu() if x.sum() > 0 else x - x.mean()
    print(f"peak {peak}")
    return y, peak


# %%
with reveal_prediction("pieces") as truth:
    (call,) = watch_calls(three_pieces, [(torch.ones(3, 4), 0.5)])
    print(call)
    truth(call.graphs)

# %% [markdown]
# Between the pieces the device waits for the host, nothing is fused across a break, and no CUDA graph can hold the
# whole function. Write `whole_graph(x, bound)`, which returns the same `y` and the peak of `x` for every `x`, including
# all zeros, and runs in one graph: no break, whatever the values are. The peak is now a tensor without dimensions; a
# caller that wants to see it prints it outside.


# %% solve="whole_graph"
def whole_graph(x, bound):
    """What three_pieces returns, in one graph; the peak is a 0-d tensor."""
    ### BEGIN SOLUTION
    peak = x.abs().max()
    x = torch.where(peak > bound, x * (bound / peak), x)
    return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak
    ### END SOLUTION


# %% check="whole_graph"
check("whole_graph")

# %% [markdown]
# ## Where you are
# %%
Progress("lab08c_compilers")
