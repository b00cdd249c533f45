# exercise: tile_order
# told: A program leaves its group of rows
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    return pid % rows, pid // rows
