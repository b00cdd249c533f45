# %% mistake="a_bucket_a_layer"
# told: your code sums each layer on its own, so every layer pays for its own rounds
def plan_buckets(layers, link):
    """Each layer by itself."""
    return [[number] for number in reversed(range(len(layers)))]


# %% mistake="after_the_backward_pass"
# told: your step does not send buckets as soon as they are ready
def run_step(dist, model, groups):
    """Everything is computed before anything is sent."""
    for group in groups:
        for number in group:
            model.backward(number)
    works = [dist.all_reduce(model.bucket(group), async_op=True) for group in groups]
    for work in works:
        work.wait()
    model.update()


# %% mistake="async_forgotten"
# told: your step blocks the backward pass during each all-reduce
def run_step(dist, model, groups):
    """Calls all_reduce as it comes."""
    for group in groups:
        for number in group:
            model.backward(number)
        dist.all_reduce(model.bucket(group))
    model.update()


# %% mistake="equal_bytes"
# told: your groups are not the fastest
def plan_buckets(layers, link):
    """A fixed cap, an eighth of all bytes, and the first layer by itself."""
    cap = sum(layer["gradient_bytes"] for layer in layers) / 8
    groups, size = [[]], 0
    for number in reversed(range(len(layers))):
        if size >= cap or number == 0:
            groups.append([])
            size = 0
        groups[-1].append(number)
        size += layers[number]["gradient_bytes"]
    return groups


# %% mistake="fat_last_bucket"
# told: your last bucket is too large
def plan_buckets(layers, link):
    """The last few layers first, and all others together."""
    order = list(reversed(range(len(layers))))
    return [order[:3], order[3:]]


# %% mistake="first_layers_first"
# told: your first bucket is the last one to be ready
def plan_buckets(layers, link):
    """In the order of the layers, two at a time."""
    order = list(range(len(layers)))
    return [order[at : at + 2] for at in range(0, len(order), 2)]


def run_step(dist, model, groups):
    """All of the backward pass, and then the sums."""
    for number in sorted((one for group in groups for one in group), reverse=True):
        model.backward(number)
    works = [dist.all_reduce(model.bucket(group), async_op=True) for group in groups]
    for work in works:
        work.wait()
    model.update()


# %% mistake="last_bucket_stays"
# told: your step never sums the gradients of some layers
# %% replace
ready = model.bucket(group)
works.append(dist.all_reduce(ready, async_op=True, algorithm="ring"))
# %% by
if group is not groups[-1]:
    works.append(dist.all_reduce(model.bucket(group), async_op=True))


# %% mistake="never_waits"
# told: your update reads gradients that are still being summed
def run_step(dist, model, groups):
    """Updates when everything has been sent."""
    for group in groups:
        for number in group:
            model.backward(number)
        dist.all_reduce(model.bucket(group), async_op=True)
    model.update()


# %% mistake="one_bucket"
# told: you use a single bucket, so no backward kernel is left to hide its sum
def plan_buckets(layers, link):
    """All gradients together."""
    return [list(reversed(range(len(layers))))]


# %% mistake="sent_too_early"
# told: your step sends a bucket before all of its gradients are ready
def run_step(dist, model, groups):
    """Sends when the first layer of the bucket is ready."""
    works = []
    for group in groups:
        model.backward(group[0])
        works.append(dist.all_reduce(model.bucket(group), async_op=True))
        for number in group[1:]:
            model.backward(number)
    for work in works:
        work.wait()
    model.update()


# %% mistake="tail_in_no_bucket"
# told: your groups do not contain every layer exactly once
def plan_buckets(layers, link):
    """Neighbours in pairs; a layer that is left over stays behind."""
    order = list(reversed(range(len(layers))))
    return [order[at : at + 2] for at in range(0, len(order) - 2, 2)]


# %% mistake="updates_first"
# told: your step updates weights before gradients are summed
def run_step(dist, model, groups):
    """Sums after the update."""
    for group in groups:
        for number in group:
            model.backward(number)
    model.update()
    for group in groups:
        dist.all_reduce(model.bucket(group))


# %% mistake="waits_after_each"
# told: your step waits for a bucket's sum while there is still something to compute
def run_step(dist, model, groups):
    """Waits for each bucket as soon as it is sent."""
    for group in groups:
        for number in group:
            model.backward(number)
        dist.all_reduce(model.bucket(group), async_op=True).wait()
    model.update()


# %% mistake="waits_for_the_first_alone"
# told: your update reads gradients that are still being summed
# like: never_waits
def run_step(dist, model, groups):
    """Waits for one work only."""
    works = []
    for group in groups:
        for number in group:
            model.backward(number)
        works.append(dist.all_reduce(model.bucket(group), async_op=True))
    works[0].wait()
    model.update()
