"""All tokens of a vocabulary as a tree of bytes, so that a grammar follows each common beginning once."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from engine.grammar.automaton import DEAD, Automaton
from engine.tokenizers import Tokenizer

LONGEST_TOKEN = 256
"""In bytes: longer ones are never written under a grammar, as the same text can be had in shorter ones."""

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Level:
    """The nodes at one depth, in the order of their parents.

    children[p] to children[p + 1]: the nodes below node p of the level above.  bytes_: the last byte of each
    node.  tokens[ends[n]] to tokens[ends[n + 1]]: the ids that are spelt out by node n.
    """

    children: Indices
    bytes_: NDArray[np.uint8]
    ends: Indices
    tokens: Indices


class TokenTree:
    """The tokens with a text, of the first n_tokens ids of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, n_tokens: int) -> None:
        self.n_tokens = n_tokens
        pieces = [tokenizer.piece(token) for token in range(n_tokens)]
        usable = [token for token, piece in enumerate(pieces) if 0 < len(piece) <= LONGEST_TOKEN]
        usable.sort(key=pieces.__getitem__)
        self._levels = _levels([pieces[token] for token in usable], np.array(usable, np.int64))

    def allowed(self, automaton: Automaton, state: int, classes: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """bool[n_tokens]: the tokens whose whole text may come next.  classes: of `Program`."""
        mask = np.zeros(self.n_tokens, np.bool_)
        nodes, states = np.zeros(1, np.int64), np.array([state], np.int64)
        for level in self._levels:
            below, owners = _ranges(level.children, nodes)
            states = automaton.next_states(states[owners], classes[level.bytes_[below]])
            alive = states != DEAD
            nodes, states = below[alive], states[alive]
            if not nodes.size:
                break
            mask[level.tokens[_ranges(level.ends, nodes)[0]]] = True
        return mask


def token_tree(tokenizer: Tokenizer, n_tokens: int) -> TokenTree:
    """The tree of a tokenizer, made once for as long as the tokenizer lives."""
    tree = _TREES.get(tokenizer)
    if tree is None or tree.n_tokens != n_tokens:
        tree = _TREES[tokenizer] = TokenTree(tokenizer, n_tokens)
    return tree


_TREES: WeakKeyDictionary[Tokenizer, TokenTree] = WeakKeyDictionary()


def _levels(pieces: list[bytes], tokens: Indices) -> list[_Level]:
    """pieces: sorted; tokens: int64[len(pieces)], their ids."""
    text = np.frombuffer(b"".join(pieces), np.uint8)
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    begins = np.cumsum(lengths) - lengths
    levels = []
    parents, n_parents = np.zeros(len(pieces), np.int64), 1
    for depth in range(int(lengths.max(initial=0))):
        long_enough = lengths > depth
        lengths, begins, tokens, parents = (part[long_enough] for part in (lengths, begins, tokens, parents))
        last = text[begins + depth]
        is_new = np.ones(len(last), np.bool_)
        is_new[1:] = (last[1:] != last[:-1]) | (parents[1:] != parents[:-1])
        nodes = np.cumsum(is_new) - 1
        n_nodes = int(nodes[-1]) + 1
        ending = lengths == depth + 1
        levels.append(
            _Level(
                children=np.searchsorted(parents[is_new], np.arange(n_parents + 1)),
                bytes_=last[is_new],
                ends=np.searchsorted(nodes[ending], np.arange(n_nodes + 1)),
                tokens=tokens[ending],
            )
        )
        parents, n_parents = nodes, n_nodes
    return levels


def _ranges(borders: Indices, chosen: Indices) -> tuple[Indices, Indices]:
    """All numbers from borders[c] to borders[c + 1] for each c of chosen, and the place in chosen of each."""
    starts = borders[chosen]
    counts = borders[chosen + 1] - starts
    owners = np.repeat(np.arange(len(chosen)), counts)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return starts[owners] + within, owners
