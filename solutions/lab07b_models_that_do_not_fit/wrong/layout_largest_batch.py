# exercise: layout
# told: another layout that fits trains faster
def place(job):
    """The layout that fits and trains the most useful sequences a second."""

    def useful_per_s(layout):
        count = layout["dp"] * layout["micro"] * layout["micro_batches"]
        return min(count, job["useful_sequences"])

    room = job["memory_bytes"]
    fitting = [one for one in every_layout(job) if layout_bytes(job, one) <= room]
    return max(fitting, key=useful_per_s)
