# %% mistake="order_columns"
# told: A program computes a tile outside its group of rows
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    return pid % rows, pid // rows


# %% mistake="order_exchanged"
# told: Your function exchanges row and column
# %% replace
return first + inside % size, inside // size
# %% by
return inside // size, first + inside % size


# %% mistake="order_groups_of_columns"
# told: Within a group, the programs are in the wrong order
# like: order_rows
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    first = pid // (group * rows) * group
    size = min(columns - first, group)
    inside = pid % (group * rows)
    return inside // size, first + inside % size


# %% mistake="order_modulo_rows"
# told: Two programs compute the same tile
# %% replace
size = min(rows - first, group)
# %% by
# %% replace
return first + inside % size, inside // size
# %% by
return (first + inside % group) % rows, inside // group


# %% mistake="order_no_last_group"
# told: A program computes a tile that does not exist
# %% replace
size = min(rows - first, group)
# %% by
# %% replace
return first + inside % size, inside // size
# %% by
return first + inside % group, inside // group


# %% mistake="order_rows"
# told: Within a group, the programs are in the wrong order
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    return pid // columns, pid % columns
