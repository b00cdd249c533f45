# %% mistake="added_both_ways"
# told: additions are priced in the second half too
from functools import wraps


def _added_both_ways(exact):
    @wraps(exact)
    def price(algorithm, job):
        """Every message is added up."""
        return exact(algorithm, {**job, "sum_byte_per_s": job["sum_byte_per_s"] / 2})

    return price


price = _added_both_ways(price)


# %% mistake="all_travels_between_nodes"
# told: too many bytes are sent between nodes
from functools import wraps


def _all_travels_between_nodes(exact):
    @wraps(exact)
    def price(algorithm, job):
        """The ring between nodes has the whole message."""
        if algorithm == "hierarchical":
            alone = exact(algorithm, {**job, "nodes": 1})
            wide = {**job, "ranks_per_node": 1, "message_bytes": job["message_bytes"]}
            return alone + exact("ring", wide) if job["nodes"] > 1 else alone
        return exact(algorithm, job)

    return price


price = _all_travels_between_nodes(price)


# %% mistake="alpha_once_each_way"
# told: the ring does not pay alpha in every round
from functools import wraps


def _alpha_once_each_way(exact):
    @wraps(exact)
    def price(algorithm, job):
        """The ring pays alpha twice in all."""
        if algorithm == "ring":
            count = job["nodes"] * job["ranks_per_node"]
            link = job["between"] if job["nodes"] > 1 else job["inside"]
            return exact(algorithm, job) - (2 * count - 4) * link["alpha_s"]
        return exact(algorithm, job)

    return price


price = _alpha_once_each_way(price)


# %% mistake="always_a_ring"
# told: another algorithm is cheaper
def pick(job):
    """Rings are best: everybody says so."""
    return "ring"


# %% mistake="depth_rounded_down"
# told: log2 P is rounded down where P is not a power of two
from functools import wraps


def _depth_rounded_down(exact):
    @wraps(exact)
    def price(algorithm, job):
        """log2 is rounded down."""
        if algorithm == "tree":
            count = job["nodes"] * job["ranks_per_node"]
            within = 1 << (count.bit_length() - 1)
            if job["nodes"] > 1:
                nodes = within // job["ranks_per_node"]
                return exact(algorithm, {**job, "nodes": nodes})
            return exact(algorithm, {**job, "ranks_per_node": within})
        return exact(algorithm, job)

    return price


price = _depth_rounded_down(price)


# %% mistake="fast_links_between"
# told: rounds that cross nodes are priced on the wrong links
from functools import wraps


def _fast_links_between(exact):
    @wraps(exact)
    def price(algorithm, job):
        """Flat algorithms run on the fast links alone."""
        if algorithm != "hierarchical":
            return exact(algorithm, {**job, "between": job["inside"]})
        return exact(algorithm, job)

    return price


price = _fast_links_between(price)


# %% mistake="every_round_crosses"
# told: rounds that stay in a node are priced on the links between
from functools import wraps


def _every_round_crosses(exact):
    @wraps(exact)
    def price(algorithm, job):
        """With several nodes, each round of a tree goes between them."""
        if algorithm in ("tree", "halving-doubling") and job["nodes"] > 1:
            return exact(algorithm, {**job, "inside": job["between"]})
        return exact(algorithm, job)

    return price


price = _every_round_crosses(price)


# %% mistake="fewest_rounds"
# told: the algorithm with the fewest rounds is not always the fastest
def pick(job):
    """The least price of an empty message."""
    empty = {**job, "message_bytes": 0}
    return min(ALGORITHMS, key=lambda name: price(name, empty))


# %% mistake="never_halves"
# told: messages are not halved from round to round
from functools import wraps


def _never_halves(exact):
    @wraps(exact)
    def price(algorithm, job):
        """Half of the message in each round."""
        count = job["nodes"] * job["ranks_per_node"]
        if algorithm == "halving-doubling" and count & (count - 1) == 0:
            return exact("tree", {**job, "message_bytes": job["message_bytes"] / 2})
        return exact(algorithm, job)

    return price


price = _never_halves(price)


# %% mistake="only_there"
# told: the second half is missing
from functools import wraps


def _only_there(exact):
    @wraps(exact)
    def price(algorithm, job):
        """The ring scatters, and never gathers."""
        if algorithm == "ring":
            silent = {**job, "sum_byte_per_s": 1e40}
            added = exact(algorithm, job) - exact(algorithm, silent)
            return exact(algorithm, silent) / 2 + added
        return exact(algorithm, job)

    return price


price = _only_there(price)


# %% mistake="others_are_forgotten"
# told: the ranks beyond a power of two are forgotten
from functools import wraps


def _others_are_forgotten(exact):
    @wraps(exact)
    def price(algorithm, job):
        """No fold for ranks beyond a power of two."""
        count = job["nodes"] * job["ranks_per_node"]
        if algorithm == "halving-doubling" and count & (count - 1):
            within = 1 << (count.bit_length() - 1)
            if job["nodes"] > 1:
                nodes = within // job["ranks_per_node"]
                return exact(algorithm, {**job, "nodes": nodes})
            return exact(algorithm, {**job, "ranks_per_node": within})
        return exact(algorithm, job)

    return price


price = _others_are_forgotten(price)


# %% mistake="slow_links_inside"
# told: messages inside a node go over the slow links
from functools import wraps


def _slow_links_inside(exact):
    @wraps(exact)
    def price(algorithm, job):
        """All messages of the hierarchy cross nodes."""
        if algorithm == "hierarchical" and job["nodes"] > 1:
            return exact(algorithm, {**job, "inside": job["between"]})
        return exact(algorithm, job)

    return price


price = _slow_links_inside(price)


# %% mistake="sums_are_free"
# told: the time for adding up is left out
from functools import wraps


def _sums_are_free(exact):
    @wraps(exact)
    def price(algorithm, job):
        """As the alpha-beta model has it."""
        return exact(algorithm, {**job, "sum_byte_per_s": 1e40})

    return price


price = _sums_are_free(price)


# %% mistake="tree_sends_chunks"
# told: the tree's number of bytes is wrong
from functools import wraps


def _tree_sends_chunks(exact):
    @wraps(exact)
    def price(algorithm, job):
        """The tree sends a P-th, as the ring does."""
        if algorithm == "tree":
            count = job["nodes"] * job["ranks_per_node"]
            return exact(
                algorithm, {**job, "message_bytes": job["message_bytes"] / count}
            )
        return exact(algorithm, job)

    return price


price = _tree_sends_chunks(price)
