# exercise: tile_order
# told: Row and column are exchanged
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    first = pid // (group * columns) * group
    size = min(rows - first, group)
    inside = pid % (group * columns)
    return inside // size, first + inside % size
