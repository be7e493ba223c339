"""Rows as a file holds them to interleaved rows: a transpose in groups of 64 rows."""


def transpose_group(rows, first, n_rows, out):
    """Tiles of 64 bytes keep both sides in the cache."""
    width = rows.shape[1]
    for tile in range(0, width, 64):
        for i in range(tile, min(tile + 64, width)):
            for row in range(n_rows):
                out[i * 64 + row] = rows[first + row, i]


# pythran export interleave(uint8[:,:] order(C), uint8[:,:] order(C), int)
# pythran export interleave(uint16[:,:] order(C), uint16[:,:] order(C), int)
# pythran export interleave(uint32[:,:] order(C), uint32[:,:] order(C), int)
def interleave(rows, out, threads):
    """rows: [rows, width] of bytes or wider elements; out: [groups, width * 64], its last group zeroed by the caller."""
    #omp parallel for schedule(static) num_threads(threads)
    for g in range(out.shape[0]):
        transpose_group(rows, g * 64, min(64, rows.shape[0] - g * 64), out[g])
