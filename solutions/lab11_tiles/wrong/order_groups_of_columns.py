# exercise: tile_order
# told: Within a group, the programs are in another order
# like: order_rows.py
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    first = pid // (group * rows) * group
    size = min(columns - first, group)
    inside = pid % (group * rows)
    return inside // size, first + inside % size
