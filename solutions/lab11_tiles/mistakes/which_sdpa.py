# %% mistake="sdpa_no_mask_as_on_cuda"
# told: Your function returned "math" for a call with a mask.
# %% replace
mask_fits = call["mask"] is None or len(call["mask"]) in (2, 4)
# %% by
mask_fits = call["mask"] is None


# %% mistake="sdpa_no_gradient"
# told: Your function returned "math" for inputs that need gradients.
# %% replace
dense = call["last_stride"] == 1 and not call["mask_requires_grad"]
# %% by
dense = (
    call["last_stride"] == 1
    and not call["mask_requires_grad"]
    and not call["requires_grad"]
)


# %% mistake="sdpa_widths_up_to_256"
# told: Your function returned "math" for a wide head.
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
# told: Your function returned "math" for float64.
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
# told: Your function returned "math" for a call with is_causal.
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
# told: Your function returned "flash" for a call with dropout.
# %% replace
fits = call["dropout_p"] == 0 and len(widths) == 1 and len(batches) == 1
# %% by
fits = len(widths) == 1 and len(batches) == 1


# %% mistake="sdpa_other_widths"
# told: Your function returned "flash" for heads of two widths.
# %% replace
fits = call["dropout_p"] == 0 and len(widths) == 1 and len(batches) == 1
# %% by
fits = call["dropout_p"] == 0 and len(batches) == 1


# %% mistake="sdpa_broadcast"
# told: Your function returned "flash" for batches that are broadcast.
# %% replace
fits = call["dropout_p"] == 0 and len(widths) == 1 and len(batches) == 1
# %% by
fits = call["dropout_p"] == 0 and len(widths) == 1


# %% mistake="sdpa_masks_of_3_dimensions"
# told: Your function returned "flash" for a mask of three dimensions.
# %% replace
mask_fits = call["mask"] is None or len(call["mask"]) in (2, 4)
# %% by
mask_fits = call["mask"] is None or len(call["mask"]) <= 4


# %% mistake="sdpa_learned_mask"
# told: Your function returned "flash" for a mask that needs a gradient.
# %% replace
dense = call["last_stride"] == 1 and not call["mask_requires_grad"]
# %% by
dense = call["last_stride"] == 1


# %% mistake="sdpa_strides_forgotten"
# told: Your function returned "flash" for strided rows.
# %% replace
dense = call["last_stride"] == 1 and not call["mask_requires_grad"]
# %% by
dense = not call["mask_requires_grad"]
