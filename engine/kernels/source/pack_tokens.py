"""Tokens in the order in which `matmul_panel` reads them."""

import numpy as np


def pack_block(x, first_token, first_col, out, tile):
    """Columns first_col to first_col + 64 of a tile of tokens as out[col * tile + token]; zeros beyond either end."""
    n = x.shape[0]
    n_cols = x.shape[1]
    for token in range(tile):
        for col in range(64):
            inside = first_token + token < n and first_col + col < n_cols
            out[col * tile + token] = x[first_token + token, first_col + col] if inside else np.float32(0)


# pythran export pack_tokens(float32[:,:] order(C), float32[:,:,:] order(C), int, int)
def pack_tokens(x, packed, tile, threads):
    """x: float32[n, cols]; packed: float32[tiles, col blocks, 64 * tile], overwritten."""
    #omp parallel for schedule(static) num_threads(threads)
    for index in range(packed.shape[0]):
        for block in range(packed.shape[1]):
            pack_block(x, index * tile, block * 64, packed[index, block], tile)
