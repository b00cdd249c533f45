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
# **About 250 minutes, in two sittings**: sections 1 and 2 (130), then 3 to 6 (120). The practice after them,
# `autotuner`, gives no points.
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
    from edl_labs.units import seconds
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
compile_here = True
compare_s = 4.0

# %%
Progress("lab08b_compilers")

# %% [markdown]
# ## A network that is slow for four reasons
#
# This network computes what it should, and it does four things that are found in real code: it asks for a number in
# every block (`checks`), scales its channels one by one (`loops`), has a convolution whose algorithm nobody chose
# (`unfolds`), and goes to another layout and back in every block (`copies`). Each of them can be switched off, and what
# it computes stays the same.

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
# Which of the four costs most on this machine? Section 6 asks you, and measures it. Until then, what a compiler would
# have to know to mend it for you.

# %% [markdown]
# ## 1. Strides: one tensor, two layouts
#
# A tensor of images has the *shape* N x C x H x W, however it lies in memory. Its **strides** say how: how many
# elements further the next index of each dimension lies. In NCHW the innermost dimension is W, in NHWC (PyTorch's
# `channels_last`) it is C, and both are the same tensor to your code. [002]: "Convolutions implemented for Tensor Cores
# require NHWC layout". Given NCHW, a library copies the tensor to NHWC first, and its result back.
#
# **Predict:** what is the stride of W of the same tensor in `channels_last`?

# %%
images = torch.empty(8, 64, 56, 56)
print(f"NCHW: {images.stride()}")
predict("stride_of_w", "In channels_last the stride of W is", unit="elements")

# %%
with revealed("stride_of_w") as truth:
    turned = images.to(memory_format=torch.channels_last)
    print(f"NHWC: {turned.stride()}, and the shape is {tuple(turned.shape)}")
    truth(turned.stride(3))

# %% [markdown]
# Who sees the whole graph can convert **once**. A `net` below is a list of nodes in their order, dicts of `"name"`,
# `"op"`, `"inputs"` (names of nodes) and the `"shape"` of the result, N x C x H x W, all in fp16:
#
# | `"op"` | its layout |
# |---|---|
# | `"conv"` | NHWC, input and result. Its `"weight"`, K x C x R x S, is stored in NCHW and read in NHWC |
# | `"nchw_only"` | NCHW: somebody's own operator, say |
# | `"any"` | one or the other, for all of its inputs and its result: norms, ReLU, additions, pooling |
# | `"input"`, `"output"` | what `"layout"` says |
#
# A result that a reader wants in another *form* is copied: read as it is, and written in that form, once for all
# readers who want the same. A form is a layout and a number of channels: [002]'s kernels want an input with "C = 4 or a
# multiple of 8", so a convolution reads other numbers of channels padded (1 to 4 channels to 4, more to the next
# multiple of 8), and its weight's C with them. Other operators take channels as they are. And where both layouts are
# the same bytes in the same places, only padding makes a copy. Write
#
# * `layout_of(shape, stride)` → `"NCHW"`, `"NHWC"`, `"both"` or `"neither"` (a view with gaps, an expanded dimension);
# * `conversions(net, layouts)` → a dict of the copied tensors' names and the bytes that copies of it read and write. A
#   node's result is called after the node, a weight `"conv1.weight"`. `layouts` has every node's layout by name;
# * `place_layouts(net)` → such `layouts`, with the fewest bytes copied. Few nodes can choose: try all.


# %% given
from itertools import product


# %% solve="strides"
def layout_of(shape, stride):
    """The layout of a tensor, from its strides."""
    ### BEGIN SOLUTION
    found = []
    for layout, inner_first in (("NCHW", (3, 2, 1, 0)), ("NHWC", (1, 3, 2, 0))):
        step, is_it = 1, True
        for at in inner_first:
            is_it = is_it and (shape[at] == 1 or stride[at] == step)
            step *= shape[at]
        found += [layout] * is_it
    return {0: "neither", 2: "both"}.get(len(found), *found[:1])
    ### END SOLUTION


def conversions(net, layouts):
    """The bytes of every copy, by name."""

    ### BEGIN SOLUTION
    def padded(channels):
        return 4 if channels <= 4 else -(-channels // 8) * 8

    def copied(shape, now, forms):
        first, channels, high, wide = shape
        one = 2 * first * high * wide
        alike = channels == 1 or high * wide == 1
        return sum(
            one * (channels + asked)
            for layout, asked in forms
            if asked != channels or (layout != now and not alike)
        )

    found = {}
    for node in net:
        name, channels = node["name"], node["shape"][1]
        readers = [one for one in net if name in one["inputs"]]
        forms = {
            (
                layouts[one["name"]],
                padded(channels) if one["op"] == "conv" else channels,
            )
            for one in readers
        }
        found[name] = copied(node["shape"], layouts[name], forms)
        if node["op"] == "conv":
            form = ("NHWC", padded(node["weight"][1]))
            found[f"{name}.weight"] = copied(node["weight"], "NCHW", {form})
    return {name: size for name, size in found.items() if size}
    ### END SOLUTION


def place_layouts(net):
    """The layouts with the fewest bytes copied."""
    ### BEGIN SOLUTION
    fixed = {"conv": "NHWC", "nchw_only": "NCHW"}
    layouts = {
        node["name"]: node.get("layout", fixed.get(node["op"], "")) for node in net
    }
    free = [name for name, layout in layouts.items() if not layout]
    every = [
        {**layouts, **dict(zip(free, chosen, strict=True))}
        for chosen in product(("NCHW", "NHWC"), repeat=len(free))
    ]
    return min(every, key=lambda one: sum(conversions(net, one).values()))
    ### END SOLUTION


# %% check="strides"
check("strides")

# %% [markdown]
# PyTorch plans nothing: each operator takes its inputs' layout and hands it on. So two lines are enough as long as
# nobody on the way wants NCHW, [002]'s `input_data.to(memory_format=torch.channels_last)` and the same for the model,
# whose weights are then copied once in all, not in every step. Layers as SqueezeNet has them first, traced:

# %%
from edl_labs.graph import Graph, as_traced, layer_by_layer

# %%
first = torch.nn.Sequential(
    torch.nn.Conv2d(3, 64, 3, stride=2),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(3, stride=2),
    torch.nn.Conv2d(64, 16, 1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(16, 64, 3, padding=1),
).eval()

# %%
with once_written("strides"):
    photos = torch.empty(1, 3, 224, 224)
    for name, layout in (("NCHW", "contiguous_format"), ("NHWC", "channels_last")):
        form = {"memory_format": getattr(torch, layout)}
        traced = Graph.of(first.to(**form), photos.to(**form))
        print(f"{name} given: {as_traced(traced)}")
    print(f"copied around each convolution: {layer_by_layer(traced)}")

# %% [markdown]
# ## 2. Five operations, one kernel
#
# In [002]'s table of a transformer's training, contractions do 99.80 % of the FLOPs in 61.0 % of the time. What takes
# the rest computes next to nothing: biases, activations, residuals and norms read tensors from memory and write them
# back, one kernel after another. GELU, written out as in a paper, is such a chain:


# %% given
def written_out(x):
    return 0.5 * x * (1 + torch.tanh(0.79788 * (x + 0.044715 * x**3)))


# %% [markdown]
# **Predict:** eager mode runs an operator a kernel. Of the bytes that it moves, how many remain where one kernel
# computes all of it? A number (`0.5`) is no tensor and costs nothing.

# %%
predict("bytes_left", "Of eager mode's bytes, one kernel moves", unit="%")

# %%
from edl_labs.graph import Partition, fusions

with revealed("bytes_left") as truth:
    chain = Graph.of(written_out, torch.empty(1 << 20))
    together = fusions(chain)
    print(f"modelled: {together}")
    truth(together.moved_bytes / chain.moved_bytes)

# %%
from functools import partial

from edl_labs import measure

x = torch.randn(1 << 20)
fused_gelu = partial(torch.nn.functional.gelu, approximate="tanh")
for name, gelu in (("written out", written_out), ("one kernel", fused_gelu)):
    print(measure(lambda gelu=gelu: gelu(x), budget_s=0.3, name=name))

# %% [markdown]
# The second is the same formula, in one kernel that PyTorch has anyway. For chains that nobody wrote by hand, a
# compiler groups the operators of a graph. Write `fuse(graph)` → a list of kernels, each a dict: `"nodes"`, the names
# of what it computes, and `"writes"`, the names of those whose results it writes to memory. `graph` is a dict of
#
# * `"nodes"`: dicts in eager mode's order, with `"name"`, which is also its result's; `"kind"`; `"reads"`, the names of
#   tensors; `"elements"`, through which its loop goes; and `"rows"`, how many results a reduction has, else None;
# * `"bytes"`: of each tensor by name (inputs, weights and results);
# * `"outputs"` and `"saved"`: results that the caller gets, and those that the *backward pass* will read;
# * `"longest_row"`: how many elements of a row (`elements / rows`) a kernel can keep on the chip.
#
# A kernel reads every tensor that its nodes read and that it does not compute itself, once, and writes its `"writes"`:
# those are the bytes to be saved, at most 2 % more than the fewest possible. These rules hold:
#
# 1. Every node is computed. A `"pointwise"` one may be in several kernels, and is then computed again in each; a
#    `"contraction"` or a `"reduction"` is in one.
# 2. A kernel is one loop: its nodes have equal `elements`, and its reductions equal `rows`.
# 3. A contraction (a product or convolution) reads its inputs many times, in tiles: nothing in its kernel may feed it,
#    at once or through others. Pointwise nodes may follow it, a reduction may not be in its kernel. Several
#    contractions may share one if they read the same input, `reads[0]`: their weights then lie side by side.
# 4. What needs a reduction's result, at once or through others, may be in its kernel if the row stays on the chip.
# 5. What a kernel reads is an input, or another kernel has written it before: no two wait for each other. Outputs and
#    what is saved are written, fused or not.
#
# Two functions are given. Trying all partitions is out of the question. Go step by step: join two kernels, or let a
# kernel compute a pointwise node again instead of reading it.


# %% given
def reads_of(graph, names):
    """What a kernel of these nodes reads from memory."""
    nodes = [node for node in graph["nodes"] if node["name"] in names]
    return {one for node in nodes for one in node["reads"]} - set(names)


def can_run(graph, kernels):
    """Whether kernels (with nodes and writes) can run, each after what it reads."""
    there = set(graph["bytes"]) - {node["name"] for node in graph["nodes"]}
    left = list(kernels)
    while left:
        ready = [one for one in left if reads_of(graph, one["nodes"]) <= there]
        if not ready:
            return False
        there |= {name for one in ready for name in one["writes"]}
        left = [one for one in left if one not in ready]
    return True


# %% solve="fuse"
def is_one_loop(graph, names):
    """Whether nodes may be one kernel, by rules 2 to 4."""
    ### BEGIN SOLUTION
    nodes = [one for one in graph["nodes"] if one["name"] in set(names)]
    products = [node for node in nodes if node["kind"] == "contraction"]
    sums = [node for node in nodes if node["kind"] == "reduction"]
    one_loop = len({node["elements"] for node in nodes}) <= 1
    alike = len({node["rows"] for node in sums}) <= 1 and not (sums and products)
    beside = len({node["reads"][0] for node in products}) <= 1
    behind = {}
    for node in nodes:
        inside = [one for one in node["reads"] if one in behind]
        behind[node["name"]] = set(inside).union(*(behind[one] for one in inside))
    fed = any(behind[node["name"]] for node in products)
    longest = graph["longest_row"]
    too_long = {one["name"] for one in sums if one["elements"] > longest * one["rows"]}
    held = not any(found & too_long for found in behind.values())
    return one_loop and alike and beside and not fed and held
    ### END SOLUTION


def with_writes(graph, groups):
    """Kernels of groups of names: each writes what others need, and none do before."""
    ### BEGIN SOLUTION
    needed = {*graph["outputs"], *graph["saved"]}
    needed |= {one for names in groups for one in reads_of(graph, names)}
    kernels, written = [], set()
    for names in groups:
        writes = [name for name in names if name in needed and name not in written]
        written |= set(writes)
        kernels.append({"nodes": names, "writes": writes})
    return kernels
    ### END SOLUTION


def moved_bytes(graph, kernels):
    """Bytes that kernels read and write."""
    ### BEGIN SOLUTION
    return sum(
        graph["bytes"][name]
        for one in kernels
        for name in [*reads_of(graph, one["nodes"]), *one["writes"]]
    )
    ### END SOLUTION


def fuse(graph):
    """Kernels for a graph: dicts of nodes and writes."""
    ### BEGIN SOLUTION
    kind = {node["name"]: node["kind"] for node in graph["nodes"]}
    kernels = with_writes(graph, [[name] for name in kind])
    while True:
        groups = [one["nodes"] for one in kernels]
        options = []
        for at, names in enumerate(groups):
            for other in groups[at + 1 :]:
                rest = [one for one in groups if one not in (names, other)]
                both = [name for name in kind if name in {*names, *other}]
                options.append((both, rest))
            rest = groups[:at] + groups[at + 1 :]
            for name in reads_of(graph, names):
                if kind.get(name) == "pointwise":
                    options.append(([name, *names], rest))
        fitting = [kernels]
        for changed, rest in options:
            if is_one_loop(graph, changed):
                found = with_writes(graph, [*rest, changed])
                fitting += [found] if can_run(graph, found) else []
        best = min(fitting, key=lambda found: moved_bytes(graph, found))
        if moved_bytes(graph, best) == moved_bytes(graph, kernels):
            return kernels
        kernels = best
    ### END SOLUTION


# %% check="fuse"
check("fuse")

# %% [markdown]
# A real model's graph comes from `torch.export`. Below are a transformer layer's operators, grouped by the same rules,
# but joining no products, in the way of `inductor`, the compiler behind `torch.compile`: step by step, the pair that
# saves most. Inductor leaves contractions to libraries (cuBLAS) unless it is told to try more, so its own kernels are
# what lies between them: that is the first grouping, and it is drawn. The second lets pointwise operators follow a
# product in its kernel. In the picture each kernel has a frame, and a line on the left leads from the kernel that
# writes a tensor to one below that reads it.


# %% given
class Layer(torch.nn.Module):
    """A transformer's layer of width 256 with four heads, norms first."""

    def __init__(self):
        super().__init__()
        for name in ("query", "key", "value", "out"):
            setattr(self, name, torch.nn.Linear(256, 256))
        self.up, self.down = torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)
        self.norm_1, self.norm_2 = torch.nn.LayerNorm(256), torch.nn.LayerNorm(256)

    def forward(self, x):
        normal = self.norm_1(x)
        heads = [
            one(normal).unflatten(-1, (4, 64)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        ]
        mixed = torch.nn.functional.scaled_dot_product_attention(*heads)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm_2(x))))


# %%
with once_written("fuse"):
    layer = Layer().eval()
    graph = Graph.of(layer, torch.randn(8, 128, 256))
    print(f"eager:              {Partition.one_each(graph)}")
    alone, followed = (fusions(graph, epilogues=one) for one in (False, True))
    print(f"library products:   {alone}")
    print(f"and what follows:   {followed}")
    axes = alone.plot()

# %% [markdown]
# And what did inductor choose? With a C++ compiler on this machine you see its kernels for this layer, otherwise those
# of a recording; it names them after what is fused in them. Compiling takes from ten seconds to two minutes, once.

# %%
from edl_labs.graph import inductor_run

with once_written("fuse"):
    example = torch.randn(8, 128, 256)
    print("compiling ..." if compile_here else "from a recording:")
    run = inductor_run(layer, example, recorded="encoder_layer", here=compile_here)
    print(run)
    for name in run.generated:
        print(f"  generated: {name}")
    print(f"  of a library: {', '.join(run.library)}")

# %% [markdown]
# Its kernels are the first grouping's, the drawn one's: the norm of the second half has the residual before it in its
# kernel, since a row of 256 stays on the chip; each product is a library's, so GELU and the last residual are kernels
# of their own. Three products read the same input, and nobody joined them. [002] says it to the one who writes the
# model: "Concatenate matrices together like qkv".
#
# [002] also calls ReLU "the best activation as it can be fused with conv-BN". Any pointwise function can; but in
# training, ReLU's backward pass needs its *result*, which the next layer reads anyway, and GELU's its *input*, which
# is then written besides.

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
# ## 4. A step for the price of one launch
#
# [000]'s host that is busy launching has another way out, [001]'s **CUDA graphs**: capture a step once, then replay all
# of its kernels with a single call. A replay knows no Python and no shapes, only *addresses*: the kernels read and
# write what they read and wrote when they were captured. `torch.compile(mode="reduce-overhead")` does this for you.
#
# `towers` is a model of an image tower and a text tower of many small kernels: twelve in each tower, and six behind
# them, the loss and five of the update. Each takes 2 µs. A tower's kernel fills half of the SMs, so that in streams of
# their own the two towers run side by side. **Predict** the time of one step on an H100 on which a launch costs the
# host 4 µs: launched kernel by kernel in one stream, then replayed as one graph with the towers side by side.

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
with revealed("eager_step") as truth:
    took = [run_towers(eager_train, batches)[1] for batches in (4, 12)]
    truth((took[1] - took[0]) / 8)

# %% [markdown]
# Write `captured_train(gpu, towers, batches)`: one training step for each batch, in order, all but the first by replays
# of one graph. `batches` are pinned buffers of the host, and what comes back is another one: the loss of every step,
# 4 bytes each, there when the function returns. In between nothing keeps the host. At most 10 % more time than the
# best program will do.
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
from edl_labs.plots import style

with once_written("capture"), revealed("replayed_step") as truth:
    runs = [run_towers(captured_train, batches) for batches in (4, 12)]
    truth((runs[1][1] - runs[0][1]) / 8)
    gpu = runs[0][0]
    axes = style.subplots(figsize=(9, 3.4))[1]
    gpu.timeline.plot(
        axes, title="Four steps: the first is launched, three are replayed"
    )

# %% [markdown]
# The host works (green) while the model's first call sets up its libraries. Then its row has a launch for each kernel
# of the first step, the capture, and a single call for each replay; below it, one stream has the image tower and the
# update, and the other one the text tower.
#
# Launches cost more than the kernels took; now the device sets the pace, and beside each other the towers take half of
# theirs. That the first step ran without the graph is no flaw: warming up *trains*, so it needs a batch of its own. And
# the static buffers are the price: who forgets to fill one trains on the last batch again, without any error.

# %% [markdown]
# ## 5. Reproducible, or fast?
#
# A gradient that many blocks of a kernel add to with `atomicAdd` is a sum in the order in which they arrive ([002]),
# and floating-point addition is not associative. **Predict:** 256 blocks of a normal distribution's values are added in
# 100 random orders in fp32. How many different sums come out?

# %%
predict("different_sums", "The hundred orders give", unit="different sums")

# %%
with revealed("different_sums") as truth:
    generator = torch.Generator().manual_seed(8)
    parts = torch.randn(256, 1000, generator=generator).sum(1)
    orders = [torch.randperm(256, generator=generator) for _ in range(100)]
    sums = {float(parts[order].numpy().cumsum()[-1]) for order in orders}
    print(f"from {min(sums)!r} to {max(sums)!r}")
    truth(len(sums))

# %% [markdown]
# Flags say what a library may choose. [002]'s list, with what torch does when you say nothing:

# %%
for flag in ("enabled", "benchmark", "deterministic", "allow_tf32"):
    print(f"torch.backends.cudnn.{flag} = {getattr(torch.backends.cudnn, flag)}")
print(
    f"torch.backends.cuda.matmul.allow_tf32 = {torch.backends.cuda.matmul.allow_tf32}"
)
everywhere = torch.are_deterministic_algorithms_enabled()
print(f"torch.use_deterministic_algorithms: {everywhere}")

# %% [markdown]
# `cudnn.benchmark` tries every algorithm for a convolution when it meets a new one (another size, dtype or layout) and
# keeps the fastest. [001] measured what that gains for 64 filters of 3x3 on a batch of 32 with 64 channels of 64x64:
#
# | | default | `benchmark = True` |
# |---|---|---|
# | forward | 1430 µs | 840 µs |
# | forward and backward | 2870 µs | 2260 µs |
#
# `cudnn.deterministic` leaves out cuDNN's algorithms with atomic adds. `torch.use_deterministic_algorithms(True)` does
# the same for all of torch, and raises an error where an operation has no other algorithm; for cuBLAS it wants
# `CUBLAS_WORKSPACE_CONFIG=:4096:8` in the environment. No flag touches what *draws* numbers, in your program and in the
# processes that load its data.
#
# `allow_tf32` lets tensor cores round the inputs of fp32 products to 10 bits of significand, where fp32 has 23, before
# they multiply; sums stay in fp32.

# %% [markdown] explain="flags"
# **Explain (read by your instructor).** (a) A test trains the same network for 200 steps every night, on the same
# machine and software, and compares the weights bit by bit with yesterday's. Which of the flags above do you set, to
# what and why, and what do you need beside them? (b) A run of a week trains on images of one size with one batch size
# and is to be fast. Which flags now? Its validation has images of 500 different sizes, 10 batches of each, forward
# only, and trying a convolution's algorithms takes 30 ms for each new size. With [001]'s figures for a convolution:
# what does `benchmark` gain or lose there, and what do you do? (c) A colleague turns TF32 off "because it is not
# reproducible". What is right about that?

# %% [markdown]
# ## 6. The network, mended
#
# Back to the slow network. **Predict** each step: of the time before it, how much is left on this machine without the
# checks, then without the loops too, then with a convolution of the library's choice, then with one layout
# (`channels_last`) from end to end?

# %%
predict("left_checks", "Without the checks there is left", unit="%")
predict("left_loops", "Without the loops, of that,", unit="%")
predict("left_unfolds", "With the library's convolution, of that,", unit="%")
predict("left_copies", "With one layout, of that,", unit="%")

# %%
predict(
    "worst_reason",
    "On this machine, the most time goes into",
    choices=("the checks", "the loops", "the convolution", "the copies"),
)
predict("mended_times", "Without all four, here, it is faster", unit="times")

# %% given
from edl_labs.bench import compare

STEPS = ("checks", "loops", "unfolds", "copies")
REASONS = ("the checks", "the loops", "the convolution", "the copies")
VERSIONS = ("slow", "no checks", "no loops", "library's convolution", "one layout")


def steps_of(measured):
    """What is left after each step, and whether it and the one before are apart."""
    rows = [(1.0, 1.0, 1.0)] + [(one.low, one.ratio, one.high) for one in measured.rows]
    pairs = list(zip(rows, rows[1:], strict=False))
    left = [new[1] / old[1] for old, new in pairs]
    return left, [new[2] < old[0] or old[2] < new[0] for old, new in pairs]


def mended(upto):
    """The network without the first so many of its four flaws, as a function."""
    layout = torch.channels_last if upto == 4 else torch.contiguous_format
    x, weights = inputs(layout)
    switches = dict.fromkeys(STEPS[:upto], False)
    return torch.no_grad()(lambda: network(x, weights, **switches))


def modelled_step(upto, side=64):
    """The seconds of a block on a modelled V100: 32 x 64 channels, 64 x 64 pixels."""
    gpu = VirtualGPU(VirtualMachine.of("V100-16GB").warm())
    size, number = 4 * 32 * 64 * side * side, gpu.empty(4)
    has = dict(zip(STEPS, (at >= upto for at in range(4)), strict=True))
    for _ in range(4):
        gpu.launch("convolution", duration_s=1430e-6 if has["unfolds"] else 840e-6)
        for name in ("there", "norm", "back") if has["copies"] else ("norm",):
            gpu.launch(name, moved_bytes=2 * size)
        for part in range(64) if has["loops"] else ():
            gpu.launch(f"scale {part}", moved_bytes=2 * size // 64)
        gpu.launch("stack or scale", moved_bytes=2 * size)
        gpu.launch("relu", moved_bytes=2 * size)
        if has["checks"]:
            gpu.launch("max", moved_bytes=size)
            gpu.item(number)
    gpu.synchronize()
    return gpu.now_s() / 4


# %%
with revealed("left_checks", "left_loops", "left_unfolds", "left_copies") as truth:
    versions = {name: mended(upto) for upto, name in enumerate(VERSIONS)}
    close = lambda one, two: torch.allclose(one, two, atol=1e-4)  # noqa: E731
    measured = compare(versions, budget_s=compare_s, equal=close)
    left, is_clear = steps_of(measured)
    print(measured)
    for at, name in enumerate(VERSIONS[1:]):
        share = modelled_step(at + 1) / modelled_step(at)
        here = f"{left[at]:.0%} left here" if is_clear[at] else "too close to tell here"
        print(f"{name}: {here}, {share:.0%} modelled on a V100")
    truth(**{f"left_{step}": left[at] for at, step in enumerate(STEPS)})

# %%
with revealed("worst_reason", "mended_times") as truth:
    ratios = [1.0, *(row.ratio for row in measured.rows)]
    saved = [ratios[at] - ratios[at + 1] for at in range(4)]
    most = saved.index(max(saved))
    if not is_clear[most]:
        print("too close to tell: no step's interval is apart from the one before it")
    whole = modelled_step(0) / modelled_step(4)
    print(f"modelled on a V100: {whole:.1f} times as fast")
    truth(worst_reason=REASONS[most], mended_times=1 / ratios[4])

# %% [markdown]
# A processor and a GPU do not suffer from the same things. On the modelled GPU the loop's 64 launches go on while the
# convolution runs, and hide behind it; only a read that waits for the device, or kernels shorter than a launch, bring
# them to light. On a processor each of them is paid where it stands, and on a busy one the intervals say how little a
# ratio may mean. So mend in the order of a profile, not of a list.
#
# And what does a compiler see?

# %%
x, ((weight, scale), _) = inputs(torch.contiguous_format)
off = dict.fromkeys(STEPS, False)


def mended_block(x, weight, scale):
    return block(x, weight, scale, **off)


for function in (block, mended_block):
    for call in watch_calls(function, [(x, weight, scale)] * 2):
        print(f"{function.__name__}: {call}")

# %% [markdown]
# A check ends the graph in every block, so that nothing is fused across it. What a C++ compiler made of both
# networks on another machine, cold and warm, is recorded here, since yours may have none (`edl-labs doctor` says):

# %%
from edl_labs.hardware import recordings

recorded = recordings.load("cpu_compiled_network")
machine = recorded.environment
print(f"recorded on one thread of an {machine['cpu_model']}, torch {machine['torch']}")
for at, name in enumerate(("slow", "mended")):
    times = ("eager", "first compiled call", "compiled, warm")
    told = ", ".join(f"{one} {seconds(recorded.values(one)[at])}" for one in times)
    ends = [
        recorded.values(f"warm against eager, {end}")[at] for end in ("low", "high")
    ]
    print(f"{name}: {told} ({ends[0]:.2f} to {ends[1]:.2f} of eager)")

# %% [markdown]
# The first call pays for the compiler: seconds, against milliseconds for each call after it. That is worth it for a
# training run, and not for a script that calls the network ten times.

# %% [markdown]
# ## Practice: which kernel is the fastest here?
#
# What `cudnn.benchmark` does for convolutions, `torch.compile(mode="max-autotune")` does for products, and Triton's
# `autotune` for kernels of your own: try the candidates, keep the fastest. [002] warns: "Only use this flag when input
# sizes of a model are no changing!" **Predict** for [001]'s convolution, forward: trying all algorithms costs what ten
# calls of the slow one do. From which call on has the trial paid for itself?

# %%
predict("paid_after", "The trial has paid after", unit="calls")

# %%
with revealed("paid_after") as truth:
    truth(-(-10 * 1430 // (1430 - 840)))

# %% [markdown]
# Write `Autotuner(candidates, gpu)` with `run(problem)`, which computes a problem with one of the candidates. Each
# candidate is a function of a problem: it launches its kernel on `gpu`, a VirtualGPU, and does not wait. The first one
# is the default. A problem is a dict of `shape` (a list), `dtype` and `layout` (texts), and what is fastest depends on
# all three. Here a problem that comes a fourth time will come often; what comes three times or less is not worth a
# trial. The first launch of a kernel loads it, for 400 µs. Clock: `gpu.now_s()`; the host waits with
# `gpu.synchronize()`.
#
# A trial may compute its problem several times, with any candidates; there is one for a problem. All other calls are
# one launch, and nothing waits. A stream of calls may take at most 10 % more time than with a good tuner.


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
# ## Where you are

# %%
Progress("lab08b_compilers")
