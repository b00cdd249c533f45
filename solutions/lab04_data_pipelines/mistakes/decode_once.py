# %% mistake="all_geometry_is_exchanged"
# told: you swapped a `cut` and a `move`
# %% replace
swaps = ({"point", "move"}, {"point", "cut"}, {"whole", "move"})
# %% by
swaps = ({"point", "move"}, {"point", "cut"}, {"whole", "move"}, {"move", "cut"})


# %% mistake="all_that_is_not_random"
# told: you moved a transform past a random one with which it does not commute
def move_offline(chain):
    return [place for place, transform in enumerate(chain) if not transform["random"]]


# %% mistake="everything_once"
# told: your answer does a random transform once for all epochs
def move_offline(chain):
    return list(range(len(chain)))


# %% mistake="only_random_ones_block"
# told: you moved a transform past one that has to stay
def move_offline(chain):
    swaps = ({"point", "move"}, {"point", "cut"}, {"whole", "move"})
    drawn = [(place, t["kind"]) for place, t in enumerate(chain) if t["random"]]
    return [
        place
        for place, t in enumerate(chain)
        if not t["random"]
        and all({t["kind"], kind} in swaps for before, kind in drawn if before < place)
    ]


# %% mistake="returns_the_transforms"
# told: wrong kind of answer
def move_offline(chain):
    return [transform for transform in chain if not transform["random"]]


# %% mistake="up_to_the_first_random"
# told: in your answer, work that could be done once is done in every epoch
def move_offline(chain):
    offline = []
    for place, transform in enumerate(chain):
        if transform["random"]:
            break
        offline.append(place)
    return offline


# %% mistake="pairs_in_one_direction"
# told: you left a transform in the loader, but it may move past those before it
def move_offline(chain):
    swaps = {("point", "move"), ("point", "cut"), ("whole", "move")}
    offline, staying = [], []
    for place, transform in enumerate(chain):
        kind = transform["kind"]
        if transform["random"] or any((kind, other) not in swaps for other in staying):
            staying.append(kind)
        else:
            offline.append(place)
    return offline
