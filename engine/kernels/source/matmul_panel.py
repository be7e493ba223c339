"""y = W x for many tokens, from decoded panels of W: the product that reading a prompt is made of."""

import numpy as np

from .panel import multiply_6, multiply_14


def clear(values):
    for i in range(values.shape[0]):
        values[i] = np.float32(0)


def multiply_group(panel, packed, sums, tile):
    """panel: [col blocks, 2, 64 * 32]; packed: [tiles, col blocks, 64 * tile]; sums: [tiles, 2, tile * 32].  Four
    blocks of columns stay in the cache while all tokens pass."""
    n_blocks = panel.shape[0]
    for first in range(0, n_blocks, 4):
        for index in range(packed.shape[0]):
            for block in range(first, min(first + 4, n_blocks)):
                for half in range(sums.shape[1]):
                    if tile == 14:
                        multiply_14(panel[block, half], packed[index, block], sums[index, half])
                    else:
                        multiply_6(panel[block, half], packed[index, block], sums[index, half])


def store_tile(sums, y, first, n_tokens, n_rows):
    for j in range(n_tokens):
        for row in range(n_rows):
            y[j, first + row] = sums[j * 32 + row]


# pythran export matmul_panel(float32[:,:,:,:] order(C), float32[:,:,:] order(C), float32[:,:] order(C),
#                             float32[:,:,:,:] order(C), int, int, int)
def matmul_panel(panels, packed, y, sums, first_row, tile, threads):
    """panels: float32[groups, col blocks, 2, 64 * 32], of the rows from first_row on, as decode kernels leave them;
    packed: float32[tiles, col blocks, 64 * tile], as `pack_tokens` leaves it; y: float32[n, rows], of which the rows
    of these groups are overwritten; sums: float32[threads, tiles, 2, tile * 32].
    """
    n_groups = panels.shape[0]
    n, n_rows = y.shape
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for index in range(packed.shape[0]):
                for half in range(sums.shape[2]):
                    clear(sums[part, index, half])
            multiply_group(panels[g], packed, sums[part], tile)
            for index in range(packed.shape[0]):
                for half in range(sums.shape[2]):
                    first = first_row + g * 64 + half * 32
                    store_tile(sums[part, index, half], y[index * tile:], first, min(tile, n - index * tile), min(32, n_rows - first))
