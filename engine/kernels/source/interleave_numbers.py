"""Rows of plain numbers as a file holds them, to interleaved rows: a transpose in groups of 64 rows."""


def transpose_group(rows, first, n_rows, out):
    """Tiles of 64 columns keep both sides in the cache."""
    width = rows.shape[1]
    for tile in range(0, width, 64):
        for i in range(tile, min(tile + 64, width)):
            for row in range(n_rows):
                out[i * 64 + row] = rows[first + row, i]
            for row in range(n_rows, 64):
                out[i * 64 + row] = 0


def has_wrong_number(group, exponent):
    """Whether all exponent bits of a number are set: it is infinite or NaN."""
    found = 0
    for i in range(group.shape[0]):
        found |= 1 if (group[i] & exponent) == exponent else 0
    return found


# pythran export interleave_numbers(uint16[:,:] order(C), uint16[:,:] order(C), int64[:,:] order(C), uint16[:] order(C),
#                                   int64[:,:] order(C), int)
# pythran export interleave_numbers(uint32[:,:] order(C), uint32[:,:] order(C), int64[:,:] order(C), uint32[:] order(C),
#                                   int64[:,:] order(C), int)
def interleave_numbers(rows, out, pieces, exponents, found, threads):
    """rows: [rows, width]; out: [groups, width * 64], of which the groups of pieces are overwritten.

    pieces: int64[threads, 3], for each thread its first row in rows, how many, and their first group in out.
    exponents: masks; found: int64[threads, 2], of which the first is set to 1 where a number has all bits of one.
    """
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range((pieces[part, 1] + 63) // 64):
            n_rows = min(64, pieces[part, 1] - g * 64)
            transpose_group(rows, pieces[part, 0] + g * 64, n_rows, out[pieces[part, 2] + g])
            for i in range(exponents.shape[0]):
                found[part, 0] |= has_wrong_number(out[pieces[part, 2] + g], exponents[i])
