"""Joining neighbouring symbols, best pair first: the heart of three kinds of tokenizer.

They do the same thing with another idea of "best": byte-pair encoding takes the pair learnt first,
SentencePiece the pair whose joined text has the best score.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

_SHORT = 64


def merge_symbols(symbols: Sequence[str], priorities: Mapping[str, float], separator: str = "") -> list[str]:
    """Join until no pair has a priority; equal priorities are joined from the left.

    priorities: of "left" + separator + "right"; the lowest is joined first.
    O(n log n) for n symbols.
    """
    pieces = list(symbols)
    ranks = [priorities.get(left + separator + right, math.inf) for left, right in pairwise(pieces)]
    merge = _merge_short if len(pieces) <= _SHORT else _merge_long
    return merge(pieces, ranks, priorities, separator)


def _merge_short(
    pieces: list[str], ranks: list[float], priorities: Mapping[str, float], separator: str
) -> list[str]:
    """Looks for the best pair anew each time, which for a word is faster than any bookkeeping.

    ranks[i]: the priority of pieces[i] and pieces[i + 1].
    """
    while ranks and (best := min(ranks)) != math.inf:
        left = ranks.index(best)
        pieces[left] += pieces.pop(left + 1)
        del ranks[left]
        if left:
            ranks[left - 1] = priorities.get(pieces[left - 1] + separator + pieces[left], math.inf)
        if left < len(ranks):
            ranks[left] = priorities.get(pieces[left] + separator + pieces[left + 1], math.inf)
    return pieces


def _merge_long(
    pieces: list[str], ranks: list[float], priorities: Mapping[str, float], separator: str
) -> list[str]:
    """A heap of candidate pairs over a doubly linked list.

    ranks[i]: the priority of pieces[i] and the piece that follows it now.
    """
    n = len(pieces)
    following = list(range(1, n + 1))
    preceding = list(range(-1, n - 1))
    ranks.append(math.inf)  # nothing follows the last one
    heap = [(rank, left) for left, rank in enumerate(ranks) if rank != math.inf]
    heapq.heapify(heap)
    while heap:
        rank, left = heapq.heappop(heap)
        # An entry is out of date when one of its two symbols has been joined to another since.
        if ranks[left] != rank:
            continue
        right = following[left]
        pieces[left] += pieces[right]
        pieces[right] = ""
        ranks[right] = math.inf
        after, before = following[right], preceding[left]
        following[left] = after
        if after != n:
            preceding[after] = left
        for first, second in ((before, left), (left, after)):
            if first < 0:
                continue
            new = math.inf
            if second != n:
                new = priorities.get(pieces[first] + separator + pieces[second], math.inf)
            ranks[first] = new
            if new != math.inf:
                heapq.heappush(heap, (new, first))
    return [piece for piece in pieces if piece]
