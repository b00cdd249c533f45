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
# both say so. *Write your prediction down* before you run the next cell: where there is a box (a number, with or without
# its unit, Enter), what comes out is shown beside it, and not before. Lecture slides are quoted by deck: [000]
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

# %% [markdown]
# ## 4. A hundred launches for the price of one

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
