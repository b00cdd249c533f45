# %% mistake="order_columns"
# told: In your order, a program computes a tile outside its group of rows.
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
# told: Within a group, your order of the programs is wrong.
# like: order_rows
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    first = pid // (group * rows) * group
    size = min(columns - first, group)
    inside = pid % (group * rows)
    return inside // size, first + inside % size


# %% mistake="order_modulo_rows"
# told: In your order, two programs compute the same tile.
# %% replace
size = min(rows - first, group)
# %% by
# %% replace
return first + inside % size, inside // size
# %% by
return (first + inside % group) % rows, inside // group


# %% mistake="order_no_last_group"
# told: In your order, a program computes a tile that does not exist.
# %% replace
size = min(rows - first, group)
# %% by
# %% replace
return first + inside % size, inside // size
# %% by
return first + inside % group, inside // group


# %% mistake="order_rows"
# told: Within a group, your order of the programs is wrong.
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    return pid // columns, pid % columns
