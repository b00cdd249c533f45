# %% mistake="sdpa_no_mask_as_on_cuda"
# told: On a CPU, a mask does not exclude flash
# %% replace
mask_fits = call["mask"] is None or len(call["mask"]) in (2, 4)
# %% by
mask_fits = call["mask"] is None


# %% mistake="sdpa_no_gradient"
# told: Gradients of the inputs do not exclude flash
# %% replace
dense = call["last_stride"] == 1 and not call["mask_requires_grad"]
# %% by
dense = (
    call["last_stride"] == 1
    and not call["mask_requires_grad"]
    and not call["requires_grad"]
)


# %% mistake="sdpa_widths_up_to_256"
# told: A wide head does not exclude flash on a CPU
# %% replace
fits = call["dropout_p"] == 0 and len(widths) == 1 and len(batches) == 1
# %% by
fits = (
    call["dropout_p"] == 0
    and len(widths) == 1
    and len(batches) == 1
    and max(widths) <= 256
)


# %% mistake="sdpa_no_double"
# told: float64 does not exclude flash on a CPU
# %% replace
fits = call["dropout_p"] == 0 and len(widths) == 1 and len(batches) == 1
# %% by
fits = (
    call["dropout_p"] == 0
    and len(widths) == 1
    and len(batches) == 1
    and call["dtype"] != "float64"
)


# %% mistake="sdpa_causal_excludes"
# told: is_causal does not exclude flash
# %% replace
fits = call["dropout_p"] == 0 and len(widths) == 1 and len(batches) == 1
# %% by
fits = (
    call["dropout_p"] == 0
    and len(widths) == 1
    and len(batches) == 1
    and not call["is_causal"]
)


# %% mistake="sdpa_dropout_allowed"
# told: Dropout excludes flash on a CPU
# %% replace
fits = call["dropout_p"] == 0 and len(widths) == 1 and len(batches) == 1
# %% by
fits = len(widths) == 1 and len(batches) == 1


# %% mistake="sdpa_other_widths"
# told: Heads of two widths exclude flash
# %% replace
fits = call["dropout_p"] == 0 and len(widths) == 1 and len(batches) == 1
# %% by
fits = call["dropout_p"] == 0 and len(batches) == 1


# %% mistake="sdpa_broadcast"
# told: Batches that are broadcast exclude flash
# %% replace
fits = call["dropout_p"] == 0 and len(widths) == 1 and len(batches) == 1
# %% by
fits = call["dropout_p"] == 0 and len(widths) == 1


# %% mistake="sdpa_masks_of_3_dimensions"
# told: A mask of three dimensions excludes flash
# %% replace
mask_fits = call["mask"] is None or len(call["mask"]) in (2, 4)
# %% by
mask_fits = call["mask"] is None or len(call["mask"]) <= 4


# %% mistake="sdpa_learned_mask"
# told: A mask that needs a gradient excludes flash
# %% replace
dense = call["last_stride"] == 1 and not call["mask_requires_grad"]
# %% by
dense = call["last_stride"] == 1


# %% mistake="sdpa_strides_forgotten"
# told: Strided rows exclude flash
# %% replace
dense = call["last_stride"] == 1 and not call["mask_requires_grad"]
# %% by
dense = not call["mask_requires_grad"]
