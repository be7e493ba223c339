"""Attention over a KV cache, tile by tile with an online softmax: nothing as long as the context is ever held,
except where a few tokens split it.

One piece of work is one KV head, a block of queries, and, where queries are few, one chunk of the context.  Tiles of
64 positions are decoded once and used by every query head that shares the KV head and every query of the block; a row
is one (query, query head).  Both products are those of `panel_rows`: 64 numbers of a head against 2 x 32 positions,
and 64 positions against 32 numbers of a head.  Chunks end at fixed positions and are put together in their order, so
the number of threads never changes a result.

A sink (Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2023; learned ones: gpt-oss) is a score
of a head without a value: all it does is to be added, as exp(sink - peak), to the sum that a row is divided by.
"""

import numpy as np

from .kv_tiles import (
    clear,
    copy_keys,
    copy_values,
    decode_byte_keys,
    decode_byte_values,
    decode_half_keys,
    decode_half_values,
)
from .panel_rows import multiply_tile
from .tile_softmax import UNSEEN, soften_rows


def tile_of(n_rows, widest):
    """Rows multiplied at once: few where there are few, since those that are missing are multiplied too."""
    if n_rows <= 4 or (widest < 8 and 6 < n_rows <= 8):
        return 4
    return 8 if widest > 8 and n_rows <= 8 else widest


def run_end(sequences, first, end):
    """Where the run of one sequence that begins at first ends."""
    last = first + 1
    while last < end and sequences[last] == sequences[first]:
        last += 1
    return last


def first_seen(positions, first, last, window):
    oldest = positions[first]
    for query in range(first, last):
        oldest = min(oldest, positions[query])
    return max(0, oldest - window + 1) if window > 0 else 0


def newest_of(positions, first, last):
    newest = positions[first]
    for query in range(first, last):
        newest = max(newest, positions[query])
    return newest


def times(values, factor, out, count):
    #omp simd
    for i in range(count):
        out[i] = values[i] * factor


def pack_queries(q, first, n_rows, group, head, head_size, scale, packed, tile):
    """Rows of q, multiplied by scale, to [row tile, head blocks, tile * 64]; zeros after the last row."""
    n_tiles = (n_rows + tile - 1) // tile
    for row in range(n_rows):
        start = (head * group + row - row // group * group) * head_size
        for block in range(packed.shape[1]):
            times(q[first + row // group, start + block * 64:], scale,
                  packed[row // tile, block, row % tile * 64:], min(64, head_size - block * 64))
    for row in range(n_rows, n_tiles * tile):
        for block in range(packed.shape[1]):
            clear(packed[row // tile, block, row % tile * 64:row % tile * 64 + 64], 0)


def sum_of(sums, row):
    """The sixteen partial sums of a row added up."""
    total = np.float32(0)
    for lane in range(16):
        total += sums[row * 16 + lane]
    return total


def unpack_row(gathered, row, tile, factor, out):
    """One row of [row tiles, head blocks, tile * 64], times factor, to [head_size]."""
    for block in range(gathered.shape[1]):
        times(gathered[row // tile, block, row % tile * 64:], factor, out[block * 64:],
              min(64, out.shape[0] - block * 64))


def attend(q, positions, keys, values, byte_keys, byte_values, whole_keys, whole_values, key_scales, value_scales,
           sequence, head, first, last, begin, end, group, window, scale, cap, tile, key_panel, value_panel, key_bits, value_bits, packed, scores, weights, gathered,
           peaks, sums, line, bits, floats):
    """Queries first to last, all of one sequence, against tiles begin to end of one KV head: gathered [row tiles,
    head blocks, tile * 64], peaks and sums of the softmax."""
    head_size = values.shape[3]
    n_tiles_of_ring = keys.shape[2]
    halves = keys.shape[0] > 0
    bytes_ = byte_keys.shape[0] > 0
    n_rows = (last - first) * group
    n_row_tiles = (n_rows + tile - 1) // tile
    pack_queries(q, first, n_rows, group, head, head_size, scale, packed, tile)
    for row_tile in range(n_row_tiles):
        for part in range(gathered.shape[1]):
            clear(gathered[row_tile, part], 0)
    for row in range(n_row_tiles * tile):
        peaks[row] = np.float32(UNSEEN)
    clear(sums, 0)
    newest = newest_of(positions, first, last)
    for block in range(begin, end):
        # Not %: Pythran 0.19 miscompiles a loop variable's modulo where the loop does not start at zero.
        ring = block - block // n_tiles_of_ring * n_tiles_of_ring
        n_slots = min(64, newest + 1 - block * 64)
        if halves:
            decode_half_keys(keys[sequence, head, ring], key_bits, key_panel)
            decode_half_values(values[sequence, head, ring * 64:], n_slots, value_bits, value_panel)
        elif bytes_:
            decode_byte_keys(byte_keys[sequence, head, ring], key_scales[sequence, head, ring], key_panel)
            decode_byte_values(byte_values[sequence, head, ring * 64:], value_scales[sequence, head, ring * 64:],
                               n_slots, value_panel)
        else:
            copy_keys(whole_keys[sequence, head, ring], key_panel)
            copy_values(whole_values[sequence, head, ring * 64:], n_slots, value_panel)
        for row_tile in range(n_row_tiles):
            clear(scores, 0)
            for part in range(key_panel.shape[0]):
                multiply_tile(key_panel[part], packed[row_tile, part], scores, tile)
            soften_rows(positions, first, block, n_rows, row_tile, group, window, cap, tile, scores, line,
                        weights, gathered[row_tile], peaks, sums, bits, floats)
            for part in range(value_panel.shape[0]):
                multiply_tile(value_panel[part], weights, gathered[row_tile, part], tile)


def sink_share(sinks, head, peak):
    """What a head's sink adds to a sum of exp(score - peak); exp(88), nearly the largest number, is the most."""
    if sinks.shape[0] == 0:
        return np.float32(0)
    return np.float32(np.exp(np.float64(min(sinks[head] - peak, np.float32(88)))))


def merge_chunks(partial, partial_statistics, row, n_chunks, sinks, head, out):
    """The chunks of one row, [chunks, rows, head_size] with peaks and sums [2, chunks, rows], put together."""
    peak = partial_statistics[0, 0, row]
    for chunk in range(1, n_chunks):
        peak = max(peak, partial_statistics[0, chunk, row])
    clear(out, 0)
    total = sink_share(sinks, head, peak)
    for chunk in range(n_chunks):
        factor = np.float32(np.exp(np.float64(partial_statistics[0, chunk, row] - peak)))
        total += factor * partial_statistics[1, chunk, row]
        part = partial[chunk, row]
        for i in range(out.shape[0]):
            out[i] += factor * part[i]
    for i in range(out.shape[0]):
        out[i] /= total


# pythran export attention(float32[:,:] order(C), float32[:,:] order(C), int32[:] order(C), int32[:] order(C),
#                          int16[:,:,:,:] order(C), int16[:,:,:,:] order(C), int8[:,:,:,:] order(C),
#                          int8[:,:,:,:] order(C), float32[:,:,:,:] order(C), float32[:,:,:,:] order(C),
#                          float32[:,:,:,:,:] order(C), float32[:,:,:,:] order(C),
#                          float32[:,:,:] order(C), float32[:,:,:] order(C), int32[:,:,:] order(C),
#                          int32[:,:,:] order(C), float32[:,:,:,:] order(C), float32[:,:] order(C),
#                          float32[:,:] order(C), float32[:,:,:,:] order(C), float32[:,:] order(C),
#                          float32[:,:] order(C), float32[:,:] order(C), int32[:,:] order(C), float32[:,:] order(C),
#                          float32[:,:,:] order(C), float32[:,:,:] order(C), float32[:] order(C), int, int, int,
#                          float32, float32, int, int)
def attention(q, out, positions, sequences, keys, values, byte_keys, byte_values, whole_keys, whole_values,
              key_scales, value_scales, key_panels, value_panels, key_bits, value_bits, packed, scores, weights, gathered, peaks, sums, lines,
              bits, floats, partial, partial_statistics, sinks, block_size, chunk_tiles, window, scale, cap, widest,
              threads):
    """q, out: float32[n, heads * head_size]; positions, sequences: int32[n].

    Of a cache in float16, as bits: keys int16[sequences, kv_heads, tiles, head_size * 64], values int16[sequences,
    kv_heads, tiles * 64, head_size].  Of one in 8 bits: byte_keys and byte_values of the same shapes, key_scales
    [sequences, kv_heads, tiles, head blocks, 64], value_scales [sequences, kv_heads, tiles * 64, head blocks].  Of one
    in float32: whole_keys and whole_values of the same shapes.  Those of the other kinds have no sequences.

    sinks: float32[heads], or of length 0 for none; block_size: queries of one piece of work; chunk_tiles: tiles of a
    chunk, 0 for no chunks; window: positions seen, 0 for all; cap: 0 for none; widest: rows that the registers hold at
    once.

    Scratch, one row per thread, with head blocks = head_size / 64 rounded up, and row tiles = block_size * heads /
    kv_heads / widest rounded up; zeros at the start: key_panels and value_panels [head blocks, 64 * 64], key_bits and
    value_bits, their int32 views, packed and gathered [row tiles, head blocks, widest * 64], scores and weights
    [widest * 64], peaks [rows of all row tiles], sums [16 times as many], lines [64], bits [64] and floats, its
    float32 view.  Of all threads, with chunks: partial [chunks, n * heads, head_size], partial_statistics
    [2, chunks, n * heads].
    """
    n = q.shape[0]
    n_kv_heads = values.shape[1]
    head_size = values.shape[3]
    n_heads = q.shape[1] // head_size
    group = n_heads // n_kv_heads
    n_blocks = (n + block_size - 1) // block_size
    n_chunks = 1
    if chunk_tiles > 0:
        first = 0
        while first < n:
            last = run_end(sequences, first, n)
            chunk = first_seen(positions, first, last, window) // 64 // chunk_tiles
            n_chunks = max(n_chunks, newest_of(positions, first, last) // 64 // chunk_tiles + 1 - chunk)
            first = last

    #omp parallel for schedule(static) num_threads(threads)
    for thread in range(threads):
        for work in range(thread, n_blocks * n_kv_heads * n_chunks, threads):
            block = work // (n_kv_heads * n_chunks)
            head = work // n_chunks - block * n_kv_heads
            chunk = work - work // n_chunks * n_chunks
            first = block * block_size
            end = min(n, first + block_size)
            while first < end:
                last = run_end(sequences, first, end)
                from_tile = first_seen(positions, first, last, window) // 64
                to_tile = newest_of(positions, first, last) // 64 + 1
                if chunk_tiles > 0:
                    chunk_start = (from_tile // chunk_tiles + chunk) * chunk_tiles
                    from_tile = max(from_tile, chunk_start)
                    to_tile = min(to_tile, chunk_start + chunk_tiles)
                tile = tile_of((last - first) * group, widest)
                if from_tile < to_tile:
                    attend(q, positions, keys, values, byte_keys, byte_values, whole_keys, whole_values,
                           key_scales, value_scales, int(sequences[first]), head, first, last, from_tile, to_tile, group, window, scale, cap,
                           tile, key_panels[thread], value_panels[thread], key_bits[thread], value_bits[thread],
                           packed[thread], scores[thread], weights[thread], gathered[thread], peaks[thread],
                           sums[thread], lines[thread], bits[thread], floats[thread])
                    for row in range((last - first) * group):
                        query = first + row // group
                        query_head = head * group + row - row // group * group
                        if chunk_tiles > 0:
                            wanted = query * n_heads + query_head
                            unpack_row(gathered[thread], row, tile, np.float32(1), partial[chunk, wanted])
                            partial_statistics[0, chunk, wanted] = peaks[thread, row]
                            partial_statistics[1, chunk, wanted] = sum_of(sums[thread], row)
                        else:
                            start = query_head * head_size
                            total = sum_of(sums[thread], row) + sink_share(sinks, query_head, peaks[thread, row])
                            unpack_row(gathered[thread], row, tile, np.float32(1) / total,
                                       out[query, start:start + head_size])
                first = last

    if chunk_tiles > 0:
        first = 0
        while first < n:
            last = run_end(sequences, first, n)
            chunk = first_seen(positions, first, last, window) // 64 // chunk_tiles
            n_chunks = newest_of(positions, first, last) // 64 // chunk_tiles + 1 - chunk
            for query in range(first, last):
                for head in range(n_heads):
                    merge_chunks(partial, partial_statistics, query * n_heads + head, n_chunks, sinks, head,
                                 out[query, head * head_size:(head + 1) * head_size])
            first = last
