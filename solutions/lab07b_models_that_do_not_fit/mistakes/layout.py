# %% mistake="layout_again_for_nothing"
# told: in your answer, the second forward pass of recomputation takes no time
# why: your answer gives a step with recomputation the same time as one without
# next: count 8 FLOP instead of 6 per parameter and token, and 6 sums of a block instead of 4
# %% replace
if layout["recompute"]:
    computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
# %% by


# %% mistake="layout_all_hides"
# told: in your answer, data sums never add time to a step
# why: your answer leaves out the part of the data sums that computing does not hide
# next: how much longer do data sums take than the computing that hides them?
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
# told: in your answer, more micro-batches are in flight than 1F1B holds
# why: your answer counts the activations of all micro-batches, as in GPipe
# next: count at most as many micro-batches as there are stages
# %% replace
blocks = job["blocks"] / pp * min(pp, layout["micro_batches"])
# %% by
blocks = job["blocks"] / pp * layout["micro_batches"]


# %% mistake="layout_all_sequences"
# told: your function does not choose the fastest layout that fits
# why: your function maximises either all sequences per second or the useful sequences per step
# next: divide the useful sequences of a step by the seconds of the step
# %% replace
return min(count, job["useful_sequences"]) / layout_s(job, layout)
# %% by
return count / layout_s(job, layout)


# %% mistake="layout_computes_for_nothing"
# told: in your answer, recomputation adds no time for products
# why: your answer gives the products the same time as without recomputation
# next: count 8 FLOP per parameter and token instead of 6
# %% replace
computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
# %% by
sums = sums * 6 / 4


# %% mistake="layout_dp_alone"
# told: in your answer, the links of the replicas depend only on `dp`
# why: but with split blocks, the replicas are further apart
# next: use the span of a group of replicas, which is `tp * dp` GPUs
# %% replace
data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
# %% by
data_s = sent_s(dp, times * (dp - 1), 2 * own / dp)


# %% mistake="layout_four_sums"
# told: in your answer, recomputation adds no sums of split blocks
# why: your answer counts only 4 sums per block even with recomputation
# next: add the sums of the forward pass that runs again
# %% replace
computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
# %% by
computing_s = computing_s * 8 / 6


# %% mistake="layout_hides_behind_all"
# told: in your answer, all micro-batches hide the data sums of ZeRO stages 0 and 1
# why: but in these stages, gradients are complete only in the last micro-batch
# next: let only one micro-batch hide these sums
# %% replace
times, beside = 2, 1
# %% by
times, beside = 2, layout["micro_batches"]
# %% replace
times, beside = 3 * layout["micro_batches"], layout["micro_batches"]
# %% by
times = 3 * layout["micro_batches"]


# %% mistake="layout_largest_batch"
# told: your function does not choose the fastest layout that fits
# like: layout_all_sequences
# why: your function maximises either all sequences per second or the useful sequences per step
# next: divide the useful sequences of a step by the seconds of the step
# %% replace
return min(count, job["useful_sequences"]) / layout_s(job, layout)
# %% by
return min(count, job["useful_sequences"])


# %% mistake="layout_memory_is_fast"
# told: in your answer, memory is assumed to be fast enough for any product
# why: `memory_byte_per_s` makes no difference to your answer
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
# told: in your answer, the bubble is left out
# why: your answer counts only one slot for each micro-batch
# next: how many slots pass until the last stage has the last micro-batch?
# %% replace
return (layout["micro_batches"] + pp - 1) * slot_s + left_s
# %% by
return layout["micro_batches"] * slot_s + left_s


# %% mistake="layout_no_inputs"
# told: in your answer, recomputation keeps no inputs of blocks
# why: your answer counts only the activations of one block
# next: from which values is a block computed again?
# %% replace
kept = 2 * inputs * blocks + 34 * inputs / tp
# %% by
kept = 34 * inputs / tp


# %% mistake="layout_no_memory"
# told: your choice of layout ignores the memory
# why: your function always chooses the fastest layout, even if this layout does not fit into memory
# next: leave out layouts that need more than `memory_bytes`
# %% replace
room = job["memory_bytes"]
fitting = [one for one in every_layout(job) if layout_bytes(job, one) <= room]
return max(fitting, key=useful_per_s)
# %% by
return max(every_layout(job), key=useful_per_s)


# %% mistake="layout_no_open_block"
# told: in your answer, the activations of the block that is recomputed are left out
# why: your answer counts only the inputs of blocks
# next: what is in memory while the backward pass of such a block runs?
# %% replace
kept = 2 * inputs * blocks + 34 * inputs / tp
# %% by
kept = 2 * inputs * blocks


# %% mistake="layout_nothing_hides"
# told: in your answer, computing hides no part of the data sums
# why: your answer adds all seconds of the data sums to the step
# next: which part of the data sums does the computation not hide?
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
# told: in your answer, only one micro-batch is in flight in the pipeline
# why: your answer counts the activations of a single micro-batch
# next: how many micro-batches has the first stage passed on when the first gradient comes back?
# %% replace
blocks = job["blocks"] / pp * min(pp, layout["micro_batches"])
# %% by
blocks = job["blocks"] / pp


# %% mistake="layout_one_way"
# told: in your answer, gradients are not sent back through the pipeline
# why: your answer counts only one message per slot
# next: count two messages: activations forward, and their gradients backward
# %% replace
slot_s += sent_s(tp * dp * pp, 2, 2 * t * h)
# %% by
slot_s += sent_s(tp * dp * pp, 1, 2 * t * h)


# %% mistake="layout_over_all_gpus"
# told: in your answer, ZeRO stage 3 shards the state over all GPUs
# why: your answer divides this GPU's part by `tp` and `pp` twice
# next: divide only by `dp`: this GPU's part is already divided by `tp` and `pp`
# %% replace
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp}
# %% by
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp / tp / pp}


# %% mistake="layout_replicas_inside"
# told: in your answer, data sums always use the links inside nodes
# why: but replicas on several nodes send over the slow links
# next: how many GPUs does a group of replicas span?
# %% replace
data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
# %% by
data_s = sent_s(1, times * (dp - 1), 2 * own / dp)


# %% mistake="layout_shortest_step"
# told: your function chooses the layout with the shortest step
# why: but the layout with the shortest step is not always the one that trains fastest
# next: how many useful sequences does a step contain?
def place(job):
    """The layout that fits and trains the most useful sequences a second."""
    room = job["memory_bytes"]
    fitting = [one for one in every_layout(job) if layout_bytes(job, one) <= room]
    return min(fitting, key=lambda layout: layout_s(job, layout))


# %% mistake="layout_splits_inside"
# told: in your answer, sums of split blocks always use the links inside nodes
# why: but blocks that are split over several nodes are summed over the slow links
# next: how many GPUs does a node have?
# %% replace
slot_s = computing_s + sums * sent_s(tp, 2 * (tp - 1), 2 * t * h / tp)
# %% by
slot_s = computing_s + sums * sent_s(1, 2 * (tp - 1), 2 * t * h / tp)


# %% mistake="layout_stages_inside"
# told: in your answer, messages between stages always use the links inside nodes
# why: but a pipeline over several nodes sends over the slow links
# next: use the span of the stages, which covers all GPUs
# %% replace
slot_s += sent_s(tp * dp * pp, 2, 2 * t * h)
# %% by
slot_s += sent_s(1, 2, 2 * t * h)


# %% mistake="layout_whole_in_stage_3"
# told: in your answer, ZeRO stage 3 does not shard the state
# why: your answer counts all 16 bytes per parameter on every replica
# next: divide these 16 bytes by `dp`
# %% replace
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp}
# %% by
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own}


# %% mistake="layout_whole_model_sent"
# told: in your answer, replicas send the gradients of the whole model
# why: but each GPU has only its own part of the gradients
# next: how many parameters does this GPU have?
# %% replace
data_s = sent_s(tp * dp, times * (dp - 1), 2 * own / dp)
# %% by
data_s = sent_s(
    tp * dp, times * (dp - 1), 2 * job["blocks"] * job["block_parameters"] / dp
)


# %% mistake="layout_whole_product"
# told: in your answer, the arithmetic intensity is that of the whole product
# why: `tp` makes no difference to the intensity in your answer
# next: count this GPU's own part of the matrix, and all of the input
# %% replace
t, h, w = layout["micro"] * job["sequence"], job["hidden"], 4 * job["hidden"] / tp
# %% by
t, h, w = layout["micro"] * job["sequence"], job["hidden"], 4 * job["hidden"]


# %% mistake="layout_pp_in_flight"
# told: in your answer, more micro-batches are in flight than a step has
# why: your answer always counts the activations of `pp` micro-batches
# next: with fewer micro-batches than stages, how many does the first stage keep?
# %% replace
blocks = job["blocks"] / pp * min(pp, layout["micro_batches"])
# %% by
blocks = job["blocks"]


# %% mistake="layout_inputs_split"
# told: your answer divides the inputs that recomputation keeps by `tp`
# why: but these inputs are whole on every GPU
# next: divide by `tp` only what is inside a block
# %% replace
kept = 2 * inputs * blocks + 34 * inputs / tp
# %% by
kept = 2 * inputs / tp * blocks + 34 * inputs / tp


# %% mistake="layout_one_slot_more"
# told: in your answer, a step has one slot too many
# why: your answer counts `micro_batches + pp` slots
# next: how many slots does a step with one micro-batch have, and how many slots does each further micro-batch add?
# %% replace
return (layout["micro_batches"] + pp - 1) * slot_s + left_s
# %% by
return (layout["micro_batches"] + pp) * slot_s + left_s


# %% mistake="layout_reads_alone"
# told: in your answer, the bytes that a product writes are left out
# why: your answer counts only the bytes that a product reads
# next: count two matrices read and one written
# %% replace
reached = t * h * w / (t * h + h * w + t * w) * job["memory_byte_per_s"]
# %% by
reached = t * h * w / (t * h + h * w) * job["memory_byte_per_s"]


# %% mistake="layout_latency_once"
# told: in your answer, α is paid once per sum instead of once per round
# why: in your answer, the time for α does not grow with the number of rounds
# next: count 2 (P - 1) rounds for a ring of P GPUs, each round with its own α
# %% replace
slot_s = computing_s + sums * sent_s(tp, 2 * (tp - 1), 2 * t * h / tp)
# %% by
link = job["inside"] if tp <= job["gpus_per_node"] else job["between"]
sum_s = 2 * (tp - 1) * 2 * t * h / tp / link["byte_per_s"] + (tp > 1) * link["alpha_s"]
slot_s = computing_s + sums * sum_s


# %% mistake="layout_shards_the_others"
# told: in your answer, ZeRO stage 1 shards the wrong part of the state
# why: your stage 1 shards the 4 bytes of weights and gradients, but keeps the optimizer's 12 bytes whole
# next: shard only the optimizer's 12 bytes
# %% replace
state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp}
# %% by
state = {0: 16 * own, 1: 4 * own / dp + 12 * own, 3: 16 * own / dp}
