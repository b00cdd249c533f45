# %% mistake="capture_allocates_inside"
# told: memory is requested while a graph is captured
# %% replace
step()
# %% by
scratch = gpu.empty(batches[0].nbytes)
gpu.copy(scratch, static)
step()


# %% mistake="capture_copies_behind"
# told: your program copies batches after the replay that should read them
# %% replace
gpu.copy(static, batches[at], non_blocking=True)
# %% by
if at == 0:
    gpu.copy(static, batches[at], non_blocking=True)
run()
gpu.copy(static, batches[at], non_blocking=True)
# %% replace
run()
# %% by


# %% mistake="capture_counts_the_capture"
# told: your program never uses one of the batches for training
# %% replace
for at in range(1, len(batches)):
    train_on(at, graph.replay)
# %% by
for at in range(2, len(batches)):
    train_on(at, graph.replay)


# %% mistake="capture_each_batch"
# told: your program captures a graph more than once
# %% replace
with gpu.graph(graph):
    step()
for at in range(1, len(batches)):
    train_on(at, graph.replay)
# %% by
for at in range(1, len(batches)):
    graph = gpu.CUDAGraph()
    with gpu.graph(graph):
        step()
    train_on(at, graph.replay)


# %% mistake="capture_empty_warm_up"
# told: your program runs a step on a buffer before any batch was copied to it
# %% replace
train_on(0, step)
# %% by
step()
# %% replace
for at in range(1, len(batches)):
    train_on(at, graph.replay)
# %% by
for at in range(len(batches)):
    train_on(at, graph.replay)


# %% mistake="capture_item_inside"
# told: item cannot be captured in a graph
# %% replace
towers.update()
# %% by
towers.update()
if gpu.current_stream() is not gpu.default_stream():
    gpu.item(towers.loss)


# %% mistake="capture_last_loss"
# told: in your program, some losses are overwritten before they are copied out
# %% replace
gpu.copy(losses[4 * at : 4 * at + 4], towers.loss, non_blocking=True)
# %% by
# %% replace
for at in range(1, len(batches)):
    train_on(at, graph.replay)
# %% by
for at in range(1, len(batches)):
    train_on(at, graph.replay)
for at in range(len(batches)):
    gpu.copy(losses[4 * at : 4 * at + 4], towers.loss, non_blocking=True)


# %% mistake="capture_losses_stay"
# told: your program copies no loss to the buffer of losses
# %% replace
gpu.copy(losses[4 * at : 4 * at + 4], towers.loss, non_blocking=True)
# %% by


# %% mistake="capture_no_graph"
# told: your program captures no graph
# %% replace
side, graph = gpu.Stream(), gpu.CUDAGraph()
# %% by
side = gpu.Stream()
# %% replace
with gpu.graph(graph):
    step()
for at in range(1, len(batches)):
    train_on(at, graph.replay)
# %% by
for at in range(1, len(batches)):
    train_on(at, step)


# %% mistake="capture_no_warm_up"
# told: this model's first call sets up its libraries
# %% replace
train_on(0, step)
# %% by
# %% replace
for at in range(1, len(batches)):
    train_on(at, graph.replay)
# %% by
for at in range(len(batches)):
    train_on(at, graph.replay)


# %% mistake="capture_one_after_the_other"
# told: in your program, the towers run one after the other
# %% replace
side, graph = gpu.Stream(), gpu.CUDAGraph()
# %% by
graph = gpu.CUDAGraph()
# %% replace
main = gpu.current_stream()
side.wait_stream(main)
with gpu.stream(side):
    towers.text(static)
# %% by
# %% replace
main.wait_stream(side)
# %% by
towers.text(static)


# %% mistake="capture_reads_too_early"
# told: your function returns before the copies of the losses have finished
# %% replace
gpu.synchronize()
# %% by


# %% mistake="capture_side_not_forked"
# told: is not part of the capture
# %% replace
side.wait_stream(main)
# %% by


# %% mistake="capture_side_not_joined"
# told: the captured stream does not wait for the work of stream
# %% replace
main.wait_stream(side)
# %% by


# %% mistake="capture_stale_input"
# told: in your program, every replay trains on the same batch
# %% replace
gpu.copy(static, batches[at], non_blocking=True)
# %% by
if at == 0:
    gpu.copy(static, batches[at], non_blocking=True)


# %% mistake="capture_waits_each_step"
# told: in your program, the host waits for the device too often
# %% replace
run()
# %% by
run()
gpu.synchronize()


# %% mistake="capture_waits_inside"
# told: synchronize cannot be captured in a graph
# %% replace
step()
# %% by
step()
gpu.synchronize()


# %% mistake="capture_warm_up_for_nothing"
# told: your program uses a batch in more than one training step
# %% replace
train_on(0, step)
# %% by
train_on(0, step)
step()
step()
