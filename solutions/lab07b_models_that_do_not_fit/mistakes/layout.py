# %% mistake="layout_again_for_nothing"
# told: recomputation costs a second forward pass
# %% replace
if layout["recompute"]:
    computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
# %% by


# %% mistake="layout_all_hides"
# told: what computing does not cover is waited for
# %% replace
times, beside = 2, 1
if layout["zero"] == 3:
    times, beside = 3 * layout["micro_batches"], layout["micro_batches"]
data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
left_s = max(0.0, data_s - beside * computing_s)
return (layout["micro_batches"] + pp - 1) * slot_s + left_s
# %% by
return (layout["micro_batches"] + pp - 1) * slot_s


# %% mistake="layout_all_in_flight"
# told: 1F1B holds no more micro-batches than there are stages
# %% replace
blocks = job["blocks"] / pp * min(pp, layout["micro_batches"])
# %% by
blocks = job["blocks"] / pp * layout["micro_batches"]


# %% mistake="layout_all_sequences"
# told: sequences beyond the useful ones were counted
# %% replace
return min(count, job["useful_sequences"]) / layout_s(job, layout)
# %% by
return count / layout_s(job, layout)


# %% mistake="layout_computes_for_nothing"
# told: recomputation computes the forward pass twice
# %% replace
computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
# %% by
sums = sums * 6 / 4


# %% mistake="layout_dp_alone"
# told: replicas of split blocks lie further apart
# %% replace
data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
# %% by
data_s = sent_s(dp, times * (dp - 1), 2 * own / dp)


# %% mistake="layout_four_sums"
# told: recomputation sums a block's outputs once more
# %% replace
computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
# %% by
computing_s = computing_s * 8 / 6


# %% mistake="layout_hides_behind_all"
# told: gradients are whole in the last micro-batch alone
# %% replace
times, beside = 2, 1
# %% by
times, beside = 2, layout["micro_batches"]
# %% replace
times, beside = 3 * layout["micro_batches"], layout["micro_batches"]
# %% by
times = 3 * layout["micro_batches"]


# %% mistake="layout_largest_batch"
# told: another layout that fits trains faster
# %% replace
return min(count, job["useful_sequences"]) / layout_s(job, layout)
# %% by
return min(count, job["useful_sequences"])


# %% mistake="layout_memory_is_fast"
# told: memory is taken to be fast enough for any product
# %% replace
t, h, w = layout["micro"] * job["sequence"], job["hidden"], 4 * job["hidden"] / tp
# %% by
t, h = layout["micro"] * job["sequence"], job["hidden"]
# %% replace
reached = t * h * w / (t * h + h * w + t * w) * job["memory_byte_per_s"]
computing_s = 6 * own * t / min(job["flop_per_s"], reached)
# %% by
computing_s = 6 * own * t / job["flop_per_s"]


# %% mistake="layout_no_bubble"
# told: the bubble is left out
# %% replace
return (layout["micro_batches"] + pp - 1) * slot_s + left_s
# %% by
return layout["micro_batches"] * slot_s + left_s


# %% mistake="layout_no_inputs"
# told: recomputation keeps the inputs of blocks
# %% replace
kept = 2 * inputs * blocks + 34 * inputs / tp
# %% by
kept = 34 * inputs / tp


# %% mistake="layout_no_memory"
# told: the choice takes no notice of memory
# %% replace
room = job["memory_bytes"]
fitting = [one for one in every_layout(job) if layout_bytes(job, one) <= room]
return max(fitting, key=useful_per_s)
# %% by
return max(every_layout(job), key=useful_per_s)


# %% mistake="layout_no_open_block"
# told: a block that is recomputed has its activations again
# %% replace
kept = 2 * inputs * blocks + 34 * inputs / tp
# %% by
kept = 2 * inputs * blocks


# %% mistake="layout_nothing_hides"
# told: data sums run beside computing
# %% replace
times, beside = 2, 1
# %% by
times = 2
# %% replace
times, beside = 3 * layout["micro_batches"], layout["micro_batches"]
# %% by
times = 3 * layout["micro_batches"]
# %% replace
left_s = max(0.0, data_s - beside * computing_s)
# %% by
left_s = data_s


# %% mistake="layout_one_in_flight"
# told: several micro-batches are in flight in a pipeline
# %% replace
blocks = job["blocks"] / pp * min(pp, layout["micro_batches"])
# %% by
blocks = job["blocks"] / pp


# %% mistake="layout_one_way"
# told: gradients go back through the pipeline
# %% replace
slot_s += sent_s(tp * dp * pp, 2, 2 * t * h)
# %% by
slot_s += sent_s(tp * dp * pp, 1, 2 * t * h)


# %% mistake="layout_over_all_gpus"
# told: state is sharded over the replicas alone
# %% replace
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp}
# %% by
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp / tp / pp}


# %% mistake="layout_replicas_inside"
# told: replicas on several nodes send over the slow links
# %% replace
data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
# %% by
data_s = sent_s(1, times * (dp - 1), 2 * own / dp)


# %% mistake="layout_shortest_step"
# told: the shortest step is not the fastest training
def place(job):
    """The layout that fits and trains the most useful sequences a second."""
    room = job["memory_bytes"]
    fitting = [one for one in every_layout(job) if layout_bytes(job, one) <= room]
    return min(fitting, key=lambda layout: layout_s(job, layout))


# %% mistake="layout_splits_inside"
# told: blocks that are split over several nodes are summed over the slow links
# %% replace
slot_s = computing_s + sums * sent_s(tp, 2 * (tp - 1), 2 * t * h / tp)
# %% by
slot_s = computing_s + sums * sent_s(1, 2 * (tp - 1), 2 * t * h / tp)


# %% mistake="layout_stages_inside"
# told: the pipeline crosses nodes
# %% replace
slot_s += sent_s(tp * dp * pp, 2, 2 * t * h)
# %% by
slot_s += sent_s(1, 2, 2 * t * h)


# %% mistake="layout_whole_in_stage_3"
# told: stage 3 of ZeRO shards all of the state
# %% replace
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp}
# %% by
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own}


# %% mistake="layout_whole_model_sent"
# told: replicas send their own part of the gradients
# %% replace
data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
# %% by
data_s = sent_s(
    tp * dp, times * (dp - 1), 2 * job["blocks"] * job["block_parameters"] / dp
)


# %% mistake="layout_whole_product"
# told: the intensity is that of the whole product
# %% replace
t, h, w = layout["micro"] * job["sequence"], job["hidden"], 4 * job["hidden"] / tp
# %% by
t, h, w = layout["micro"] * job["sequence"], job["hidden"], 4 * job["hidden"]
