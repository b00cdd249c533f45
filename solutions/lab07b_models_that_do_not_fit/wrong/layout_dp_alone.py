# exercise: layout
# told: replicas of split blocks lie further apart
def layout_s(job, layout):
    """Seconds of a step."""
    dp, tp, pp = layout["dp"], layout["tp"], layout["pp"]
    t, h, w = layout["micro"] * job["sequence"], job["hidden"], 4 * job["hidden"] / tp
    own = job["blocks"] / pp * job["block_parameters"] / tp

    def sent_s(span, rounds, size):
        link = job["inside"] if span <= job["gpus_per_node"] else job["between"]
        return rounds * (link["alpha_s"] + size / link["byte_per_s"])

    reached = t * h * w / (t * h + h * w + t * w) * job["memory_byte_per_s"]
    computing_s = 6 * own * t / min(job["flop_per_s"], reached)
    sums = 4 * job["blocks"] / pp
    if layout["recompute"]:
        computing_s, sums = computing_s * 8 / 6, sums * 6 / 4
    slot_s = computing_s + sums * sent_s(tp, 2 * (tp - 1), 2 * t * h / tp)
    if pp > 1:
        slot_s += sent_s(tp * dp * pp, 2, 2 * t * h)
    times, beside = 2, 1
    if layout["zero"] == 3:
        times, beside = 3 * layout["micro_batches"], layout["micro_batches"]
    data_s = sent_s(dp, times * (dp - 1), 2 * own / dp)
    left_s = max(0.0, data_s - beside * computing_s)
    return (layout["micro_batches"] + pp - 1) * slot_s + left_s
