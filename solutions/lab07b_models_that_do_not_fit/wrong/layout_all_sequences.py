# exercise: layout
# told: sequences beyond the useful ones were counted
def place(job):
    """The layout that fits and trains the most useful sequences a second."""

    def useful_per_s(layout):
        count = layout["dp"] * layout["micro"] * layout["micro_batches"]
        return count / layout_s(job, layout)

    room = job["memory_bytes"]
    fitting = [one for one in every_layout(job) if layout_bytes(job, one) <= room]
    return max(fitting, key=useful_per_s)
