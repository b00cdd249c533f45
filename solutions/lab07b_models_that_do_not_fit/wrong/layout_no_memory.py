# exercise: layout
# told: the choice takes no notice of memory
def place(job):
    """The layout that fits and trains the most useful sequences a second."""

    def useful_per_s(layout):
        count = layout["dp"] * layout["micro"] * layout["micro_batches"]
        return min(count, job["useful_sequences"]) / layout_s(job, layout)

    return max(every_layout(job), key=useful_per_s)
