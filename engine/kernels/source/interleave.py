"""Bytes of rows as a file holds them, to interleaved rows: a transpose in groups of 64 rows.

A tile is 64 rows of 64 bytes.  Eight rows of eight bytes are transposed inside 64-bit words, in three steps that
swap halves, quarters and single bytes between pairs of rows, for eight places at once; what is left is to move
words.  Byte by byte it takes six times as long.  Words are little-endian, as files are.
"""

import numpy as np


def copy_row(source, target):
    #omp simd
    for i in range(64):
        target[i] = source[i]


def load_tile(rows, first, width, n_rows, start, tile):
    """Bytes start to start + 64 of rows that begin at byte first; zeros for those that the last group lacks."""
    for i in range(n_rows * 64, 4096):
        tile[i] = np.uint8(0)
    if start + 64 <= width:
        for row in range(n_rows):
            copy_row(rows[first + row * width + start:], tile[row * 64:])
    else:
        for row in range(n_rows):
            for i in range(width - start):
                tile[row * 64 + i] = rows[first + row * width + start + i]


def look_ahead(rows, start):
    """Reads a byte of each cache line of the 4096 bytes from start on, so that they are near when their turn comes.

    A tile takes a line of each of 64 rows, a pattern in which processors do not see the next line; here they do.
    """
    seen = np.uint8(0)
    for i in range(start, min(start + 4096, rows.shape[0]), 64):
        seen |= rows[i]
    return seen


def low(a, b, shift, mask):
    return (a & mask) | ((b & mask) << shift)


def high(a, b, shift, mask):
    return ((a >> shift) & mask) | (b & ~mask)


def transpose_eight(x, y):
    """x: word w of row r at 8 r + w; y: byte k of word w, of rows 0 to 7, at 8 k + w."""
    halves = np.uint64(0x00000000FFFFFFFF)
    quarters = np.uint64(0x0000FFFF0000FFFF)
    bytes_ = np.uint64(0x00FF00FF00FF00FF)
    s32 = np.uint64(32)
    s16 = np.uint64(16)
    s8 = np.uint64(8)
    #omp simd
    for w in range(8):
        a = low(x[w], x[32 + w], s32, halves)
        b = low(x[8 + w], x[40 + w], s32, halves)
        c = low(x[16 + w], x[48 + w], s32, halves)
        d = low(x[24 + w], x[56 + w], s32, halves)
        e = high(x[w], x[32 + w], s32, halves)
        f = high(x[8 + w], x[40 + w], s32, halves)
        g = high(x[16 + w], x[48 + w], s32, halves)
        h = high(x[24 + w], x[56 + w], s32, halves)
        ac = low(a, c, s16, quarters)
        bd = low(b, d, s16, quarters)
        ca = high(a, c, s16, quarters)
        db = high(b, d, s16, quarters)
        eg = low(e, g, s16, quarters)
        fh = low(f, h, s16, quarters)
        ge = high(e, g, s16, quarters)
        hf = high(f, h, s16, quarters)
        y[w] = low(ac, bd, s8, bytes_)
        y[8 + w] = high(ac, bd, s8, bytes_)
        y[16 + w] = low(ca, db, s8, bytes_)
        y[24 + w] = high(ca, db, s8, bytes_)
        y[32 + w] = low(eg, fh, s8, bytes_)
        y[40 + w] = high(eg, fh, s8, bytes_)
        y[48 + w] = low(ge, hf, s8, bytes_)
        y[56 + w] = high(ge, hf, s8, bytes_)


def store_bytes(words, out, places, start, n):
    """Bytes start to start + n of all 64 rows, each to its place: eight words, each of eight rows."""
    for i in range(n):
        for eight in range(8):
            out[places[start + i] * 8 + eight] = words[eight * 64 + (i - i // 8 * 8) * 8 + i // 8]


def interleave_group(rows, first, width, n_rows, out, places, tile, tile_words, words):
    """Returns what was seen of the following group, or the compiler would leave out looking."""
    seen = np.uint8(0)
    for start in range(0, width, 64):
        seen |= look_ahead(rows, first + (start + width) * 64)
        load_tile(rows, first, width, n_rows, start, tile)
        for eight in range(8):
            transpose_eight(tile_words[eight * 64:], words[eight * 64:])
        store_bytes(words, out, places, start, min(64, width - start))
    return seen


def has_wrong_scale(group, block_bytes, high_byte):
    """Whether any float16 whose upper byte is at high_byte of a block is infinite or NaN: all exponent bits set."""
    exponent = np.uint64(0x7C7C7C7C7C7C7C7C)
    most = np.uint64(0x7F7F7F7F7F7F7F7F)
    found = np.uint64(0)
    for block in range(group.shape[0] // (8 * block_bytes)):
        for i in range(8):
            # 0 in a byte whose bits are all set; the sum reaches the upper bit of all other bytes
            missing = (group[(block * block_bytes + high_byte) * 8 + i] & exponent) ^ exponent
            found |= ~(missing + most) & ~most
    return 0 if found == np.uint64(0) else 1


# pythran export interleave(uint8[:], int, uint64[:,:] order(C), int64[:], int64[:,:] order(C), int, int64[:],
#                           uint8[:,:] order(C), uint64[:,:] order(C), uint64[:,:] order(C), int64[:,:] order(C), int)
def interleave(rows, width, out, places, pieces, block_bytes, scales, tiles, tile_words, words, found, threads):
    """rows: uint8[rows * width]; out: uint64[groups, width * 8], of which the groups of pieces are overwritten.

    pieces: int64[threads, 3], for each thread its first row in rows, how many, and their first group in out.
    places: int64[width], where each byte of a row is to lie.
    scales: int64[n], where a block of block_bytes then has the upper byte of a float16 that must be finite.
    found: int64[threads, 2], of which the first is set to 1 where one is not, and the second means nothing.
    Scratch: tiles uint8[threads, 4096] and tile_words uint64[threads, 512], the same memory; words
    uint64[threads, 512].
    """
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        wrong = 0
        seen = np.uint8(0)
        for g in range((pieces[part, 1] + 63) // 64):
            group = pieces[part, 2] + g
            n_rows = min(64, pieces[part, 1] - g * 64)
            seen |= interleave_group(rows, (pieces[part, 0] + g * 64) * width, width, n_rows, out[group], places, tiles[part],
                                     tile_words[part], words[part])
            for i in range(scales.shape[0]):
                wrong |= has_wrong_scale(out[group], block_bytes, scales[i])
        found[part, 0] |= wrong
        found[part, 1] = np.int64(seen)
