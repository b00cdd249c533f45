# exercise: tile_order
# told: Within a group, the programs are in another order
def tile_order(pid, rows, columns, group):
    """(row, column) of the tile of program `pid`, in groups of `group` rows."""
    return pid // columns, pid % columns
