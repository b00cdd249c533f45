# %% mistake="added_both_ways"
# told: your price includes additions in the second half, too
from functools import wraps


def _added_both_ways(exact):
    @wraps(exact)
    def price(algorithm, job):
        """Every message is added up."""
        return exact(algorithm, {**job, "sum_byte_per_s": job["sum_byte_per_s"] / 2})

    return price


price = _added_both_ways(price)


# %% mistake="all_travels_between_nodes"
# told: your price includes too many bytes between nodes
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
# told: your price of the ring does not include alpha in every round
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
# told: your function does not pick the cheapest algorithm
def pick(job):
    """Rings are best: everybody says so."""
    return "ring"


# %% mistake="depth_rounded_down"
# told: your price rounds log2 P down where P is not a power of two
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
# told: your price uses the wrong links for rounds that cross nodes
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
# told: your price uses the links between nodes for rounds that stay in a node
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
# told: your function always picks the algorithm with the fewest rounds
def pick(job):
    """The least price of an empty message."""
    empty = {**job, "message_bytes": 0}
    return min(ALGORITHMS, key=lambda name: price(name, empty))


# %% mistake="never_halves"
# told: your price does not halve the messages from round to round
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
# told: your price leaves out the second half of the all-reduce
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
# told: your price leaves out the ranks beyond a power of two
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
# told: your price sends messages inside a node over the slow links
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
# told: your price leaves out the time for adding up
from functools import wraps


def _sums_are_free(exact):
    @wraps(exact)
    def price(algorithm, job):
        """As the alpha-beta model has it."""
        return exact(algorithm, {**job, "sum_byte_per_s": 1e40})

    return price


price = _sums_are_free(price)


# %% mistake="tree_sends_chunks"
# told: your price of the tree includes the wrong number of bytes
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
