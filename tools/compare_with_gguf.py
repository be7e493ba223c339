#!/usr/bin/env python3
"""Compares the exact decoding of every tensor type with the `gguf` package from PyPI, bit for bit.

    tools/compare_with_gguf.py            decode some thousand random blocks of each type with both
    tools/compare_with_gguf.py --write    write tests/data/decoded_types.npz, which the tests compare with
    tools/compare_with_gguf.py --grids    print the IQ types' grids as engine/quantisation/grids.py has them

Wants an environment of its own, in which `pip install gguf` (0.19 or later) was run.
"""

from __future__ import annotations

import argparse
import base64
import sys
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
FIXTURE = ROOT / "tests" / "data" / "decoded_types.npz"
sys.path.insert(0, str(ROOT))

from engine.gguf.tensor_types import TENSOR_TYPES  # noqa: E402
from engine.quantisation.registry import FORMATS  # noqa: E402

GRIDS = ("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--grids", action="store_true")
    options = parser.parse_args()
    if options.grids:
        for name in GRIDS:
            print(name, packed_grid(name))
        return 0
    if options.write:
        arrays = {}
        for name in types_of_gguf():
            blocks = samples(name, 8)
            arrays |= {f"{name}.blocks": blocks, f"{name}.values": wanted(name, blocks)}
        np.savez_compressed(FIXTURE, **arrays)
        print(f"{FIXTURE.relative_to(ROOT)}: {len(types_of_gguf())} types, {FIXTURE.stat().st_size:,} bytes")
        return 0
    return compare()


def compare() -> int:
    different = 0
    for name in FORMATS:
        if name not in types_of_gguf():
            print(f"{name:8} gguf does not decode it")
            continue
        blocks = samples(name, 4000)
        with np.errstate(all="ignore"):
            ours = FORMATS[name].decode(blocks).view(np.uint32)
        wrong = int((ours != wanted(name, blocks)).any(axis=1).sum())
        different += wrong
        print(f"{name:8} {len(blocks):5} blocks, {wrong} different")
    return 1 if different else 0


def types_of_gguf() -> list[str]:
    """Names of the types that the package decodes."""
    from gguf import GGMLQuantizationType, quants

    known = [name for name in FORMATS if name in GGMLQuantizationType.__members__]
    found = []
    for name in known:
        block = np.zeros((1, TENSOR_TYPES[name].block_bytes), np.uint8)
        try:
            quants.dequantize(block, GGMLQuantizationType[name])
        except NotImplementedError:
            continue
        found.append(name)
    return found


def wanted(name: str, blocks: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """uint32[n, block_size]: the bits of what the package makes of blocks."""
    from gguf import GGMLQuantizationType, quants

    with np.errstate(all="ignore"):
        values = quants.dequantize(blocks, GGMLQuantizationType[name])
    return np.ascontiguousarray(values, np.float32).view(np.uint32).reshape(len(blocks), -1)


def samples(name: str, count: int) -> NDArray[np.uint8]:
    """uint8[n, block_bytes]: zeros, few bits, and random bytes; only blocks whose values are finite.

    Random scales are of every size, denormal ones among them.
    """
    rng = np.random.default_rng(1)
    width = TENSOR_TYPES[name].block_bytes
    dense, *others = rng.integers(0, 256, (4, 2 * count, width), np.uint8)
    sparse = others[0] & others[1] & others[2]
    blocks = np.concatenate([np.zeros((1, width), np.uint8), dense, sparse])
    finite = np.isfinite(wanted(name, blocks).view(np.float32)).all(axis=1)
    kept = blocks[finite]
    return np.concatenate([kept[: count + 1], kept[-count:]])


def packed_grid(name: str) -> str:
    """The points of a grid as `engine.quantisation.grids` tells them."""
    from gguf import quants

    table = getattr(quants, name)
    table.init_grid()
    levels = [int(level) for level in table.grid_map]
    points = table.grid.reshape(table.grid_shape).astype(int)
    digits = np.vectorize(levels.index)(points)
    numbers = (digits * len(levels) ** np.arange(digits.shape[1])).sum(axis=1)
    if (np.diff(numbers) <= 0).any():
        raise ValueError(f"the points of {name} are not in ascending order")
    present = np.zeros(len(levels) ** digits.shape[1], np.uint8)
    present[numbers] = 1
    packed = np.packbits(present, bitorder="little").tobytes()
    strategies = range(zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED + 1)
    deflaters = [zlib.compressobj(9, zlib.DEFLATED, -15, 9, strategy) for strategy in strategies]
    return base64.b85encode(min((d.compress(packed) + d.flush() for d in deflaters), key=len)).decode()


if __name__ == "__main__":
    sys.exit(main())
