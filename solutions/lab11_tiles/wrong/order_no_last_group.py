# exercise: tile_order
# told: A program computes a tile that does not exist
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    first = pid // (group * columns) * group
    inside = pid % (group * columns)
    return first + inside % group, inside // group
