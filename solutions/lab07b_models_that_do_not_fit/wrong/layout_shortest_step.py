# exercise: layout
# told: the shortest step is not the fastest training
def place(job):
    """The layout that fits and trains the most useful sequences a second."""
    room = job["memory_bytes"]
    fitting = [one for one in every_layout(job) if layout_bytes(job, one) <= room]
    return min(fitting, key=lambda layout: layout_s(job, layout))
