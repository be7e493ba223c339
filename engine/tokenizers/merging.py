"""Joining neighbouring symbols, best pair first: the heart of both tokenizer kinds.

Both kinds do the same thing with another idea of "best": byte-pair encoding takes the pair learnt first,
SentencePiece the pair whose joined text has the best score.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

Priority = Callable[[str, str], float | None]
"""Of a left and a right symbol: lower is joined earlier; None: never joined."""


def merge_symbols(symbols: Sequence[str], priority: Priority) -> list[str]:
    """Join until no pair has a priority; equal priorities are joined from the left.

    A heap of candidate pairs over a doubly linked list: O(n log n) for n symbols.
    """
    pieces = list(symbols)
    n = len(pieces)
    if n < 2:
        return pieces
    following = list(range(1, n + 1))
    preceding = list(range(-1, n - 1))
    heap: list[tuple[float, int]] = []
    for left in range(n - 1):
        rank = priority(pieces[left], pieces[left + 1])
        if rank is not None:
            heap.append((rank, left))
    heapq.heapify(heap)

    while heap:
        rank, left = heapq.heappop(heap)
        if not pieces[left]:
            continue
        right = following[left]
        # An entry is out of date when one of its two symbols has been joined to another since.
        if right == n or priority(pieces[left], pieces[right]) != rank:
            continue
        pieces[left] += pieces[right]
        pieces[right] = ""
        after = following[right]
        following[left] = after
        if after != n:
            preceding[after] = left
            rank_after = priority(pieces[left], pieces[after])
            if rank_after is not None:
                heapq.heappush(heap, (rank_after, left))
        before = preceding[left]
        if before >= 0:
            rank_before = priority(pieces[before], pieces[left])
            if rank_before is not None:
                heapq.heappush(heap, (rank_before, before))
    return [piece for piece in pieces if piece]
