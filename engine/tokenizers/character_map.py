"""The table of characters that SentencePiece compiles into a vocabulary (`precompiled_charsmap`).

Format, from SentencePiece's and darts-clone's public sources, numbers little-endian: uint32, size in bytes of
a double-array trie; the trie, uint32 units; replacements, each ended by a zero byte.  A unit holds a label
(bits 0 to 7), a mark that a value follows (bit 8), and the distance to its children (bits 10 to 30, shifted
by 8 if bit 9 is set); a unit with bit 31 is a value: where its replacement begins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.errors import TokenizerError

_LONGEST_KEY = 64  # bytes; a loop in a damaged trie ends there
_VALUE = np.uint32(1 << 31)


class CharacterMap:
    """Replaces characters and sequences of them: leftmost first, the longest of those that begin there.

    raw: the bytes of the map; none at all changes nothing.  Raises TokenizerError for a damaged one.
    """

    def __init__(self, raw: bytes) -> None:
        self._units, self._strings = _read(raw) if raw else (np.zeros(0, np.uint32), b"")

    def normalise(self, text: str) -> str:
        if not len(self._units) or not text:
            return text
        raw = text.encode()
        lengths, values = self._matches(np.frombuffer(raw, np.uint8))
        found = np.flatnonzero(lengths)
        parts: list[bytes] = []
        position = 0
        for start, length, value in zip(
            found.tolist(), lengths[found].tolist(), values[found].tolist(), strict=True
        ):
            if start >= position:
                parts += (raw[position:start], self._string_at(value))
                position = start + length
        parts.append(raw[position:])
        return b"".join(parts).decode("utf-8", "replace")

    def _matches(self, raw: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """For each byte the length of the longest key that begins there, 0 for none, and its value.

        All places walk down the trie at once, one byte in each round.
        """
        units = self._units
        lengths = np.zeros(len(raw), np.uint8)
        values = np.zeros(len(raw), np.uint32)
        starts = np.flatnonzero((raw & 0xC0) != 0x80)  # a character begins there
        bases = np.full(len(starts), _distances(units[:1])[0], np.uint32)
        for length in range(1, _LONGEST_KEY + 1):
            labels = raw[starts + (length - 1)]
            nodes = bases ^ labels
            inside = nodes < len(units)
            found = units[np.where(inside, nodes, 0)]
            alive = inside & ((found & (_VALUE | 0xFF)) == labels) & (labels != 0)
            starts, nodes, found = starts[alive], nodes[alive], found[alive]
            bases = nodes ^ _distances(found)
            ends = ((found >> 8) & 1).astype(np.bool_) & (bases < len(units))
            lengths[starts[ends]] = length
            values[starts[ends]] = units[bases[ends]] & ~_VALUE
            more = starts + length < len(raw)
            starts, bases = starts[more], bases[more]
            if not len(starts):
                break
        return lengths, values

    def _string_at(self, offset: int) -> bytes:
        return self._strings[offset : self._strings.index(b"\0", offset)]


def _read(raw: bytes) -> tuple[NDArray[np.uint32], bytes]:
    """The units of the trie and the replacements; every value points to one of them."""
    size = int.from_bytes(raw[:4], "little")
    if len(raw) < 9 or size % 4 or not 4 <= size < len(raw) - 4:
        raise _damaged("its trie does not fit into it")
    units = np.frombuffer(raw, "<u4", size // 4, 4).astype(np.uint32)
    strings = raw[4 + size :]
    if not strings.endswith(b"\0"):
        raise _damaged("its last replacement has no end")
    nodes = np.flatnonzero(((units >> 8) & 1).astype(np.bool_) & (units < _VALUE))
    places = nodes ^ _distances(units[nodes])
    if (places >= len(units)).any() or ((units[places] & ~_VALUE) >= len(strings)).any():
        raise _damaged("a value points out of it")
    return units, strings


def _distances(units: NDArray[np.uint32]) -> NDArray[np.uint32]:
    distances = (units >> np.uint32(10)) << ((units & np.uint32(1 << 9)) >> np.uint32(6))
    return distances


def _damaged(why: str) -> TokenizerError:
    return TokenizerError(f"The vocabulary's table of characters is damaged: {why}.")
