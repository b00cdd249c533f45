# exercise: overlap_plan
# told: the batches are loaded into pageable memory


def feed(gpu, batches, *, nbytes, slots, load, step):
    one_after_another(gpu, batches, nbytes=nbytes, slots=slots, load=load, step=step)
