"""Keeps one reply to a grammar: which tokens may come next, and whether it is at its end."""

from __future__ import annotations

import threading
from collections import OrderedDict
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from engine.grammar.automaton import DEAD, Automaton
from engine.grammar.expressions import Grammar
from engine.grammar.program import program_of
from engine.grammar.token_tree import LONGEST_TOKEN, token_tree
from engine.tokenizers import Tokenizer

MASKS_KEPT = 128
"""A reply comes back to the same few states, such as the inside of a text, again and again."""


STATES_KEPT = 20_000
"""From one reply to the next, some kB each; with more of them the next reply begins anew."""


class _Automata(threading.local):
    """Those of one thread: they change while they are used."""

    def __init__(self) -> None:
        self.of_grammars: WeakKeyDictionary[Grammar, Automaton] = WeakKeyDictionary()


_AUTOMATA = _Automata()


def _automaton_of(grammar: Grammar) -> Automaton:
    """What replies under the grammar have met so far: later ones come to the same states."""
    automaton = _AUTOMATA.of_grammars.get(grammar)
    if automaton is None or automaton.n_states > STATES_KEPT:
        automaton = _AUTOMATA.of_grammars[grammar] = Automaton(program_of(grammar))
    return automaton


class Constraint:
    """The state of one reply.  Raises `GrammarError` where the grammar is too large."""

    def __init__(self, grammar: Grammar, tokenizer: Tokenizer, n_tokens: int) -> None:
        """n_tokens: the ids that have logits; fewer than the tokenizer's where a model has fewer."""
        self._program = program_of(grammar)
        self._automaton = _automaton_of(grammar)
        self._state = self._automaton.start
        self._tokenizer = tokenizer
        self._tree = token_tree(tokenizer, n_tokens)
        self._ends = np.array([token for token in tokenizer.eog_ids if token < n_tokens], np.int64)
        self._masks: OrderedDict[int, NDArray[np.bool_]] = OrderedDict()

    @property
    def is_complete(self) -> bool:
        """Whether the text is a whole one and nothing may follow."""
        return self._automaton.is_accepting(self._state) and not self._automaton.can_go_on(self._state)

    def allows(self, token: int) -> bool:
        """Whether token may come next."""
        mask = self._masks.get(self._state)
        if mask is not None:
            return bool(mask[token])
        if token in self._tokenizer.eog_ids:
            return self._automaton.is_accepting(self._state)
        piece = self._tokenizer.piece(token)
        fits = 0 < len(piece) <= LONGEST_TOKEN
        return fits and self._automaton.follow(self._state, piece) != DEAD

    def allowed(self) -> NDArray[np.bool_]:
        """bool[n_tokens], not to be written to: the tokens that may come next.

        Tokens that end a reply may come where the text is a whole one.  There is none at all where the
        vocabulary lacks the bytes that the grammar asks for.  Raises `GrammarError` where the grammar leads
        to too many states.
        """
        mask = self._masks.get(self._state)
        if mask is None:
            mask = self._tree.allowed(self._automaton, self._state, self._program.classes)
            mask[self._ends] = self._automaton.is_accepting(self._state)
            self._masks[self._state] = mask
            if len(self._masks) > MASKS_KEPT:
                self._masks.popitem(last=False)
        self._masks.move_to_end(self._state)
        return mask

    def advance(self, token: int) -> None:
        """Goes on behind token, which must be allowed and end no reply."""
        state = self._automaton.follow(self._state, self._tokenizer.piece(token))
        if state == DEAD:
            raise ValueError(f"the grammar does not allow the token {token}")
        self._state = state
