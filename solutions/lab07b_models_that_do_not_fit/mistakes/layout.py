# %% mistake="layout_again_for_nothing"
# told: recomputation costs a second forward pass
# why: its time is that of a step without it
# next: count 8 FLOPs instead of 6, and 6 sums of a block instead of 4
# %% replace
if layout["recompute"]:
    computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
# %% by


# %% mistake="layout_all_hides"
# told: sums that computing does not hide add to the step
# why: data sums cost nothing
# next: how much longer do they take?
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
# why: the activations of all of them were counted
# next: that would be GPipe
# %% replace
blocks = job["blocks"] / pp * min(pp, layout["micro_batches"])
# %% by
blocks = job["blocks"] / pp * layout["micro_batches"]


# %% mistake="layout_all_sequences"
# told: another layout that fits trains faster
# why: the choice goes by all sequences a second, or by the useful ones of a step
# next: divide the useful sequences of a step by its seconds
# %% replace
return min(count, job["useful_sequences"]) / layout_s(job, layout)
# %% by
return count / layout_s(job, layout)


# %% mistake="layout_computes_for_nothing"
# told: recomputation computes the forward pass twice
# why: the products took as long as without recomputation
# next: 8 FLOPs a parameter and token for 6
# %% replace
computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
# %% by
sums = sums * 6 / 4


# %% mistake="layout_dp_alone"
# told: replicas of split blocks are further apart
# why: their links were chosen by dp alone
# next: a group of replicas spans tp * dp GPUs
# %% replace
data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
# %% by
data_s = sent_s(dp, times * (dp - 1), 2 * own / dp)


# %% mistake="layout_four_sums"
# told: recomputation sums a block's outputs once more
# why: 4 sums were counted with it, too
# next: its forward pass runs again, with all it sends
# %% replace
computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
# %% by
computing_s = computing_s * 8 / 6


# %% mistake="layout_hides_behind_all"
# told: gradients are whole in the last micro-batch alone
# why: data sums hide behind all micro-batches
# next: stages 0 and 1 have one micro-batch to hide behind
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
# like: layout_all_sequences
# why: the choice goes by all sequences a second, or by the useful ones of a step
# next: divide the useful sequences of a step by its seconds
# %% replace
return min(count, job["useful_sequences"]) / layout_s(job, layout)
# %% by
return min(count, job["useful_sequences"])


# %% mistake="layout_memory_is_fast"
# told: memory is taken to be fast enough for any product
# why: memory_byte_per_s makes no difference
# next: a split product has a lower arithmetic intensity: which rate does it reach?
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
# why: a step has one slot for each micro-batch
# next: how many slots go by until the last stage has the last micro-batch?
# %% replace
return (layout["micro_batches"] + pp - 1) * slot_s + left_s
# %% by
return layout["micro_batches"] * slot_s + left_s


# %% mistake="layout_no_inputs"
# told: recomputation keeps the inputs of blocks
# why: one block's activations were counted
# next: from what would a block be computed again?
# %% replace
kept = 2 * inputs * blocks + 34 * inputs / tp
# %% by
kept = 34 * inputs / tp


# %% mistake="layout_no_memory"
# told: the choice takes no notice of memory
# why: it is the fastest of all layouts in all cases, and does not fit
# next: leave out what needs more than memory_bytes
# %% replace
room = job["memory_bytes"]
fitting = [one for one in every_layout(job) if layout_bytes(job, one) <= room]
return max(fitting, key=useful_per_s)
# %% by
return max(every_layout(job), key=useful_per_s)


# %% mistake="layout_no_open_block"
# told: a block that is recomputed holds its activations again
# why: inputs alone were counted
# next: what is in memory while its backward pass runs?
# %% replace
kept = 2 * inputs * blocks + 34 * inputs / tp
# %% by
kept = 2 * inputs * blocks


# %% mistake="layout_nothing_hides"
# told: data sums overlap computing
# why: all of their seconds were added
# next: what is left of them?
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
# why: the activations of one were counted
# next: what has the first stage passed on when the first gradient comes back?
# %% replace
blocks = job["blocks"] / pp * min(pp, layout["micro_batches"])
# %% by
blocks = job["blocks"] / pp


# %% mistake="layout_one_way"
# told: gradients go back through the pipeline
# why: one message a slot was counted
# next: activations forward, their gradients back
# %% replace
slot_s += sent_s(tp * dp * pp, 2, 2 * t * h)
# %% by
slot_s += sent_s(tp * dp * pp, 1, 2 * t * h)


# %% mistake="layout_over_all_gpus"
# told: state is sharded over the replicas alone
# why: stage 3 was divided by all GPUs once more
# next: this GPU's part is divided by tp and pp already
# %% replace
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp}
# %% by
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp / tp / pp}


# %% mistake="layout_replicas_inside"
# told: replicas on several nodes send over the slow links
# why: they were priced on the links inside
# next: how many GPUs does a group of replicas span?
# %% replace
data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
# %% by
data_s = sent_s(1, times * (dp - 1), 2 * own / dp)


# %% mistake="layout_shortest_step"
# told: the shortest step is not the fastest training
# why: the choice has the shortest step
# next: how many useful sequences are in it?
def place(job):
    """The layout that fits and trains the most useful sequences a second."""
    room = job["memory_bytes"]
    fitting = [one for one in every_layout(job) if layout_bytes(job, one) <= room]
    return min(fitting, key=lambda layout: layout_s(job, layout))


# %% mistake="layout_splits_inside"
# told: blocks that are split over several nodes are summed over the slow links
# why: they were priced on the links inside
# next: how many GPUs has a node?
# %% replace
slot_s = computing_s + sums * sent_s(tp, 2 * (tp - 1), 2 * t * h / tp)
# %% by
slot_s = computing_s + sums * sent_s(1, 2 * (tp - 1), 2 * t * h / tp)


# %% mistake="layout_stages_inside"
# told: the pipeline crosses nodes
# why: its messages were priced on the links inside
# next: its stages span all GPUs
# %% replace
slot_s += sent_s(tp * dp * pp, 2, 2 * t * h)
# %% by
slot_s += sent_s(1, 2, 2 * t * h)


# %% mistake="layout_whole_in_stage_3"
# told: stage 3 of ZeRO shards all of the state
# why: it was counted whole
# next: 16 bytes a parameter, over dp
# %% replace
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp}
# %% by
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own}


# %% mistake="layout_whole_model_sent"
# told: replicas send their own part of the gradients
# why: those of the whole model were sent
# next: how many parameters has this GPU?
# %% replace
data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
# %% by
data_s = sent_s(
    tp * dp, times * (dp - 1), 2 * job["blocks"] * job["block_parameters"] / dp
)


# %% mistake="layout_whole_product"
# told: the intensity is that of the whole product
# why: tp makes no difference to it
# next: each GPU reads its own part of the matrix, and all of the input
# %% replace
t, h, w = layout["micro"] * job["sequence"], job["hidden"], 4 * job["hidden"] / tp
# %% by
t, h, w = layout["micro"] * job["sequence"], job["hidden"], 4 * job["hidden"]


# %% mistake="layout_pp_in_flight"
# told: no more micro-batches are in flight than there are
# why: the activations of pp of them were counted
# next: with fewer micro-batches than stages, how many does the first stage keep?
# %% replace
blocks = job["blocks"] / pp * min(pp, layout["micro_batches"])
# %% by
blocks = job["blocks"]


# %% mistake="layout_inputs_split"
# told: the inputs that recomputation keeps are whole on every GPU
# why: they were divided by tp
# next: what a block's GPUs share is what is inside it
# %% replace
kept = 2 * inputs * blocks + 34 * inputs / tp
# %% by
kept = 2 * inputs / tp * blocks + 34 * inputs / tp


# %% mistake="layout_one_slot_more"
# told: a step has one slot too many
# why: micro_batches + pp of them were counted
# next: the last micro-batch has pp - 1 stages before it when the first one is through
# %% replace
return (layout["micro_batches"] + pp - 1) * slot_s + left_s
# %% by
return (layout["micro_batches"] + pp) * slot_s + left_s


# %% mistake="layout_reads_alone"
# told: what a product gives is written, too
# why: the bytes that are read were counted alone
# next: two matrices in, one out
# %% replace
reached = t * h * w / (t * h + h * w + t * w) * job["memory_byte_per_s"]
# %% by
reached = t * h * w / (t * h + h * w) * job["memory_byte_per_s"]


# %% mistake="layout_latency_once"
# told: every round costs α
# why: α was paid once for a whole sum
# next: a ring of P has 2 (P - 1) rounds, one after the other
# %% replace
slot_s = computing_s + sums * sent_s(tp, 2 * (tp - 1), 2 * t * h / tp)
# %% by
link = job["inside"] if tp <= job["gpus_per_node"] else job["between"]
sum_s = 2 * (tp - 1) * 2 * t * h / tp / link["byte_per_s"] + (tp > 1) * link["alpha_s"]
slot_s = computing_s + sums * sum_s


# %% mistake="layout_shards_the_others"
# told: stage 1 shards the optimizer's 12 bytes
# why: it sharded the other 4 and kept those whole
# next: weights and gradients stay whole
# %% replace
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp}
# %% by
state = {0: 16 * own, 1: 4 * own / dp + 12 * own, 3: 16 * own / dp}
