# %% [markdown]
# # Layouts and fusion: what a graph knows
#
# Eager PyTorch runs one operation after another and does not look ahead. A compiler that has the whole *graph* can do
# more: keep one layout from end to end, and turn five kernels into one. In this lab you take the compiler's role.
#
# After this lab you can
#
# * read strides, and place layouts so that the fewest bytes are moved;
# * say which operations may become one kernel, and what that saves;
# * read what a compiler fused, and say why it stopped where it did.
#
# **About 146 minutes (estimated)**. This lab has no practice section.
#
# | exercise | `strides` | `fuse` |
# |---|---|---|
# | section | 1 | 2 |
# | minutes | 66 | 80 |
#
# You need neither a GPU nor a compiler: results of a GPU are modelled, results of a compiler may be recorded, and both
# are labelled. *Write your prediction down* before you run the next cell. If there is a box, enter a number, with or
# without its unit, and press Enter. The result then appears next to it. Lecture slides are quoted by deck: [001] course
# introduction, [002] software perspective. `hint("strides")` gives the hints of an exercise, one at a time. When a
# check fails, `case("strides")` gives the inputs of the case that it shows.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.requires_solution import requires_solution
    from edl_labs.ui.predictions import Instead, predict, reveal_prediction
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
compile_here = True
compare_s = 4.0

# %%
Progress("lab08b_layouts")

# %% [markdown]
# ## A network that is slow for four reasons
#
# This network computes the right result, but slowly, because it does four things that are found in real code. It reads
# a number back in every block (`checks`), scales its channels one by one (`loops`), has a convolution whose algorithm
# was never tuned (`unfolds`), and changes to another layout and back in every block (`copies`). You can switch off any
# of them without changing the result.

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
# This lab covers two of the four: the copies are a question of *layouts*, and the loop is a question of *fusion*. (The
# next lab, lab08c, covers the checks and the convolution.) How much does each cost on this machine? In section 3 you
# predict it and measure it.

# %% [markdown]
# ## 1. Strides: one tensor, two layouts
#
# A tensor of images has the *shape* N x C x H x W, however it is stored in memory. Its **strides** say how it is
# stored: for each dimension, how many elements apart two consecutive indices are. In NCHW the innermost dimension is W,
# in NHWC (PyTorch's `channels_last`) it is C, and both are the same tensor to your code. [002]: "Convolutions
# implemented for Tensor Cores require NHWC layout". If a tensor is in NCHW, a library first copies it to NHWC, and then
# copies the result back.
#
# **Predict:** what is the stride of W for the same tensor in `channels_last`?

# %%
images = torch.empty(8, 64, 56, 56)
print(f"NCHW: {images.stride()}")
predict("stride_of_w", "In channels_last the stride of W is", unit="elements")

# %%
with reveal_prediction("stride_of_w") as truth:
    turned = images.to(memory_format=torch.channels_last)
    print(f"NHWC: {turned.stride()}, and the shape is {tuple(turned.shape)}")
    truth(turned.stride(3))

# %% [markdown]
# If you have the whole graph, you can convert **once**. Below, a `net` is a list of nodes in execution order. Each node
# is a dict with `"name"`, `"op"`, `"inputs"` (names of nodes) and the `"shape"` of the result, N x C x H x W. All
# tensors are in fp16:
#
# | `"op"` | its layout |
# |---|---|
# | `"conv"` | NHWC (input and result). Its weight (`"weight"` is its shape K x C x R x S) is NCHW, but read as NHWC |
# | `"nchw_only"` | NCHW: a custom operator, for example |
# | `"any"` | either, but the same for all its inputs and its result: norms, ReLU, additions, pooling |
# | `"input"`, `"output"` | what `"layout"` says |
#
# A result that a reader needs in a different *form* is copied: it is read as it is and written in that form, once for
# all readers that need the same form. A form is a layout and a number of channels. [002]'s kernels need an input with
# "C = 4 or a multiple of 8", so a convolution pads other numbers of channels (1 to 4 channels to 4, more to the next
# multiple of 8), and pads its weight's C in the same way. Other operators take channels as they are. If both layouts
# put the same bytes in the same places, only padding needs a copy. Write
#
# * `layout_of(shape, stride)` → `"NCHW"`, `"NHWC"`, `"both"` or `"neither"` (a view with gaps, an expanded dimension);
# * `conversions(net, layouts)` → a dict from the name of each copied tensor to the bytes that its copies read and
#   write. A node's result has the name of the node, and the weight of `conv1` is called `"conv1.weight"`. `layouts`
#   gives every node's layout by name;
# * `place_layouts(net)` → the `layouts` with the fewest bytes copied. Only a few nodes have a choice: try all
#   combinations.


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
# Eager PyTorch plans nothing: each operator uses its inputs' layout and passes it on. (`torch.compile` does plan: on
# CUDA it may make a graph's convolutions channels-last, see `torch._inductor.config.layout_optimization`.) So two lines
# are enough as long as no operator in between needs NCHW: [002]'s `input_data.to(memory_format=torch.channels_last)`,
# and the same for the model, whose weights are then copied only once, not in every step. The next cells show layers
# like SqueezeNet's, first traced in fp32, then as a net in fp16 with the layouts that you chose:

# %%
from edl_labs.graph import Graph, as_traced, layer_by_layer, plain_net
from edl_labs.units import byte_count, seconds

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
photos = torch.empty(1, 3, 224, 224)
for name, layout, plan in (
    ("NCHW", torch.contiguous_format, layer_by_layer),  # a copy before and after each
    ("NHWC", torch.channels_last, as_traced),
):
    form = {"memory_format": layout}
    traced = Graph.of(first.to(**form), photos.to(**form))
    print(f"{name} input, fp32: {plan(traced)}")

# %%
with requires_solution("strides"):
    for layout in ("NCHW", "NHWC"):
        net = plain_net(traced, layout=layout)
        copied = conversions(net, place_layouts(net))
        total = byte_count(sum(copied.values()))
        print(f"{layout} input and output, fp16, yours: {total}")
        print(f"  {', '.join(copied)}")

# %% [markdown]
# With NHWC input, the trace copies nothing, but your net still copies the photos and two weights. Three channels are
# padded to four, which a trace does not show, and a net's weights are stored in NCHW.

# %% [markdown]
# ## 2. Five operations, one kernel
#
# In [002]'s table of a transformer's training, contractions do 99.80 % of the FLOPs in 61.0 % of the time. The rest of
# the time goes to operators that compute almost nothing: biases, activations, residuals and norms read tensors from
# memory and write them back, one kernel after another. GELU, written out as in the paper, is such a chain:


# %% given
def written_out(x):
    return 0.5 * x * (1 + torch.tanh(0.79788 * (x + 0.044715 * x**3)))


# %% [markdown]
# **Predict:** eager mode runs one kernel per operator. What share of its bytes remains if one kernel computes
# everything? A number such as `0.5` is not a tensor, and moves no bytes.

# %%
predict("bytes_left", "Of eager mode's bytes, one kernel moves", unit="%")

# %%
from edl_labs.graph import Partition, fusions

with reveal_prediction("bytes_left") as truth:
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
# The second line measures the same formula in a single kernel, which PyTorch already has. For other chains, a compiler
# groups the operators of a graph. Write `fuse(graph)` → a list of kernels. Each is a dict: `"nodes"` lists the names of
# the nodes that it computes, and `"writes"` the names of those whose results it writes to memory. `graph` is a dict of
#
# * `"nodes"`: dicts in eager mode's order, with `"name"`, which is also the name of the result; `"kind"`; `"reads"`,
#   the names of tensors; `"elements"`, over which the node loops; and `"rows"`, the number of results of a reduction
#   (None for other nodes);
# * `"bytes"`: the bytes of each tensor (input, weight or result) by name;
# * `"outputs"` and `"saved"`: the results that the caller gets, and those that the *backward pass* will read;
# * `"longest_row"`: how many elements of a row (`elements / rows`) a kernel can keep on the chip.
#
# A kernel writes its `"writes"`. It reads every tensor that its nodes read and that it does not compute itself, and
# each only once. Minimize these bytes: at most 2 % more than the fewest possible are allowed. The rules:
#
# 1. Every node is computed. A `"pointwise"` node may be in several kernels, and is then computed again in each; any one
#    of them may write it. A `"contraction"` or a `"reduction"` is in exactly one kernel.
# 2. A kernel is one loop: its nodes have equal `elements`, and its reductions equal `rows`.
# 3. A contraction (a product or convolution) reads its inputs many times, in tiles, so no node in its kernel may feed
#    it, directly or through others. Pointwise nodes may follow it, but a reduction may not be in its kernel. Several
#    contractions may share a kernel if they read the same input, `reads[0]`: their weights are then stored side by
#    side.
# 4. A node that needs a reduction's result, directly or through others, may be in the reduction's kernel if the row
#    stays on the chip.
# 5. Everything that a kernel reads is an input or has been written by an earlier kernel, so no two kernels wait for
#    each other. Outputs and saved results are always written.
#
# Two functions are given below. There are too many partitions to try all of them. Go step by step: join two kernels, or
# let a kernel compute a pointwise node again instead of reading it. You may call any function of `edl_labs.graph`. Its
# `fusions` joins kernels but never computes a node twice, which is not enough for the fewest bytes.


# %% given
def reads_of(graph, names):
    """What a kernel with these nodes reads from memory."""
    nodes = [node for node in graph["nodes"] if node["name"] in names]
    return {one for node in nodes for one in node["reads"]} - set(names)


def can_run(graph, kernels):
    """Whether kernels can run, each after those that write what it reads."""
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
    """Kernels for groups of names: each writes what is needed and not yet written."""
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
# A real model's graph comes from `torch.export`. Below, a transformer layer's operators are grouped by the same
# rules, but products are not joined. The method is that of `inductor`, the compiler behind `torch.compile`: step by
# step, it joins the pair that saves most. Inductor leaves contractions to libraries (cuBLAS) unless you tell it to
# try more, so its own kernels contain only what is between them. The grouping `library products` below, shown in the
# picture, follows this rule. The grouping `with epilogues` also lets pointwise operators (*epilogues*) follow a
# product in its kernel; your `fuse` has neither limit. In the picture each kernel has a frame, and a line on the left
# leads from the kernel that writes a tensor to a kernel below that reads it.


# %% given
class Layer(torch.nn.Module):
    """A transformer layer of width 256 with four heads, norms first."""

    def __init__(self):
        super().__init__()
        square = (torch.nn.Linear(256, 256) for _ in range(4))
        self.query, self.key, self.value, self.out = square
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
from edl_labs.graph import partition_of, plain_graph

layer = Layer().eval()
graph = Graph.of(layer, torch.randn(8, 128, 256))
print(f"eager:              {Partition.one_each(graph)}")
alone, followed = (fusions(graph, epilogues=one) for one in (False, True))
print(f"library products:   {alone}")
print(f"with epilogues:     {followed}")
with requires_solution("fuse"):
    print(f"yours:              {partition_of(graph, fuse(plain_graph(graph)))}")
axes = alone.plot()

# %% [markdown]
# And what does inductor choose? With a C++ compiler on this machine you see its kernels for this layer, otherwise those
# from a recording. Inductor names its kernels after the operators that are fused in them. Compiling takes ten seconds
# to two minutes, but only once.

# %%
from edl_labs.graph import inductor_run

example = torch.randn(8, 128, 256)
print("compiling ..." if compile_here else "from a recording:")
run = inductor_run(layer, example, recorded="encoder_layer", here=compile_here)
print(run)
for name in run.generated:
    print(f"  generated: {name}")
print(f"  from a library: {', '.join(run.library)}")

# %% [markdown]
# Its kernels are those of the grouping `library products`, the one in the picture. The kernel of the second norm also
# contains the residual before it, since a row of 256 elements stays on the chip. Each product is a library call, so
# GELU and the last residual are separate kernels. Three products read the same input, but only your `fuse` joined
# them. [002] gives this advice to the author of the model: "Concatenate matrices together like qkv".
#
# [002] also calls ReLU "the best activation as it can be fused with conv-BN". Any pointwise function can be fused. But
# in training, ReLU's backward pass needs ReLU's *result*, which the next layer reads anyway, while GELU's needs GELU's
# *input*, which must then be written too.
# %% [markdown]
# ## 3. Half of the network, fixed
#
# Now back to the slow network, with the library's convolution: `unfold` and its product return NCHW for any layout of
# their input, and lab08c covers them. The loop over channels is the problem of section 2: there are many kernels
# where one would be enough, and `torch` already has that kernel. The copies are the problem of section 1: which
# operator on the way needs NCHW? None does. **Predict** for this machine: what share of the slow network's time
# remains without the loops? And what share of that remains once the network also uses one layout (`channels_last`)
# from end to end?

# %%
predict("left_loops", "Without the loops, the share that remains is", unit="%")
predict("left_copies", "Also with one layout, the share of that is", unit="%")

# %%
predict(
    "worse_reason",
    "On this machine, more time is spent in",
    choices=("the loops", "the copies"),
)

# %% given
from edl_labs.bench import compare
from edl_labs.plots import style
from edl_labs.virtual import VirtualGPU, VirtualMachine

STEPS = ("loops", "copies")
VERSIONS = ("slow", "no loops", "one layout")


def steps_of(measured):
    """What each step leaves of the time, and whether the intervals are apart."""
    rows = [(1.0, 1.0, 1.0)] + [(one.low, one.ratio, one.high) for one in measured.rows]
    pairs = list(zip(rows, rows[1:], strict=False))
    left = [new[1] / old[1] for old, new in pairs]
    return left, [new[2] < old[0] or old[2] < new[0] for old, new in pairs]


def mended(upto):
    """The network without the first `upto` of this lab's two flaws, as a function."""
    layout = torch.channels_last if upto == 2 else torch.contiguous_format
    x, weights = inputs(layout)
    switches = dict.fromkeys(("unfolds", *STEPS[:upto]), False)
    return torch.no_grad()(lambda: network(x, weights, **switches))


def modelled_block(upto, side):
    """A block after `upto` steps, on a modelled V100; 32 images of 64 channels."""
    gpu = VirtualGPU(VirtualMachine.of("V100-16GB").warm())
    size = 4 * 32 * 64 * side * side
    gpu.launch("convolution", duration_s=1430e-6 * (side / 64) ** 2)
    for name in ("there", "norm", "back") if upto < 2 else ("norm",):
        gpu.launch(name, moved_bytes=2 * size)
    for part in range(64) if upto < 1 else ():
        gpu.launch(f"scale {part}", moved_bytes=2 * size // 64)
    gpu.launch("stack or scale", moved_bytes=2 * size)
    gpu.launch("relu", moved_bytes=2 * size)
    gpu.synchronize()
    return gpu


def modelled_left(upto, side=64):
    """What the next step leaves of a block's time on the modelled V100."""
    before, after = (modelled_block(n, side).now_s() for n in (upto, upto + 1))
    return after / before


# %%
with reveal_prediction("left_loops", "left_copies") as truth:
    versions = {name: mended(upto) for upto, name in enumerate(VERSIONS)}
    close = lambda one, two: torch.allclose(one, two, atol=1e-4)  # noqa: E731
    measured = compare(versions, budget_s=compare_s, equal=close)
    left, is_clear = steps_of(measured)
    print(measured)
    for at, name in enumerate(VERSIONS[1:]):
        here = f"{left[at]:.0%} left" if is_clear[at] else "too close to tell"
        print(f"{name}: {here}")
    modelled = [modelled_left(at) for at in range(2)]
    for at, step in enumerate(STEPS):
        instead = Instead(modelled[at], "modelled on a V100")
        truth(**{f"left_{step}": left[at] if is_clear[at] else instead})

# %%
with reveal_prediction("worse_reason") as truth:
    ratios = [1.0, *(row.ratio for row in measured.rows)]
    saved = [ratios[at] - ratios[at + 1] for at in range(2)]
    worse = saved.index(max(saved))
    if is_clear[worse]:
        truth(worse_reason=("the loops", "the copies")[worse])
    else:
        print("too close to tell: the intervals before and after it overlap")

# %% [markdown]
# On a GPU, the same flaws cost time in a different way. In the model below, a block processes 32 images of 64
# channels on a V100. Its convolution is the one that was never tuned, and takes 1430 µs on 64 x 64 pixels ([001]).
# The host launches ahead: as long as the convolution runs, the loop's 64 launches hide behind it. On 16 x 16 pixels
# the convolution takes a sixteenth of the time, but launching costs the same. **Predict** for these small images:
# what share of the time remains without the loops?

# %%
predict("left_small", "On 16 x 16 pixels, without the loops, what remains is", unit="%")

# %%
with reveal_prediction("left_small") as truth:
    for side in (64, 16):
        slow, looped, whole = (modelled_block(upto, side).now_s() for upto in range(3))
        print(
            f"modelled, {side} x {side}: {seconds(slow)},"
            f" without loops {seconds(looped)}, in one layout {seconds(whole)}"
        )
    truth(left_small=looped / slow)

# %%
axes = style.subplots(figsize=(9, 2.6))[1]
title = "A slow block on 16 x 16 pixels: launches set the pace (modelled)"
modelled_block(0, 16).timeline.plot(axes, title=title)

# %% [markdown]
# And what would a compiler do with the loop? It gets the graph of a block, with one operator for each channel and one
# more that stacks the results. **Predict:** how many kernels do its 30 operators become, by the rules of section 2?

# %%
predict("kernels_left", "The 30 operators become", unit="kernels")

# %%
with reveal_prediction("kernels_left") as truth:
    x, ((weight, scale), _) = inputs(torch.contiguous_format)
    for name, off in (("slow", ()), ("no loops", STEPS[:1]), ("one layout", STEPS)):
        switches = dict.fromkeys(("checks", "unfolds", *off), False)
        graph = Graph.of(partial(block, **switches), x, weight, scale)
        print(f"{name}: {fusions(graph)}")
        if name == "slow":
            truth(fusions(graph).launches)

# %% [markdown]
# The loop is gone without a change to your code: pointwise operators of one loop become one kernel, however many lines
# of code they took. The copies are joined with their neighbours too, but a copy's bytes remain if its result is read by
# an operator that cannot be joined. All this is true for a graph without `checks`: each check ends the graph. Lab08c
# begins with the reason, and with what a compiler does then.

# %% [markdown]
# ## Where you are

# %%
Progress("lab08b_layouts")
