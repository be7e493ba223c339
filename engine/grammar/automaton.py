"""Follows a compiled grammar: states, and what each byte makes of them.

A state is the set of all steps at which the text so far may be, each with the callers its rule may return to.
Callers are a graph of shared records (a graph-structured stack, after Tomita, "Efficient Parsing for Natural
Language", 1985), so that ambiguous grammars cost no more than the number of their steps for each byte.
States have numbers; transitions are worked out when first asked for, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from engine.errors import GrammarError
from engine.grammar.program import Call, Fork, Program, Read, Return

DEAD = -1
"""The state of a text that the grammar does not describe."""

UNKNOWN = -2
"""In the table of transitions: not worked out yet."""

MOST_STATES = 100_000
"""Of one reply; each takes some kB."""

OUTERMOST = 0
"""The caller of the root rule."""

Threads = dict[int, frozenset[int]]
"""Step to read a byte with -> the callers of its rule."""


Intern = Callable[[int, frozenset[int]], int]
"""The number of the caller that goes on at a step, with callers of its own."""


class Automaton:
    """The states met so far.  START is the state of the empty text."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._classes: list[int] = program.classes.tolist()
        self._callers: dict[tuple[int, frozenset[int]], int] = {}
        self._caller_records: list[tuple[int, frozenset[int]]] = [(-1, frozenset())]
        self._numbers: dict[tuple[frozenset[tuple[int, frozenset[int]]], bool], int] = {}
        self._numbers_behind: dict[frozenset[tuple[int, frozenset[int]]], int] = {}
        self._threads: list[Threads] = []
        self._accepting: list[bool] = []
        self._table = np.full((16, len(program.samples)), UNKNOWN, np.int32)
        self.start = self._state({program.starts[program.root]: frozenset((OUTERMOST,))})

    @property
    def n_states(self) -> int:
        """The states met so far."""
        return len(self._threads)

    def is_accepting(self, state: int) -> bool:
        """Whether the text so far is a whole one."""
        return state != DEAD and self._accepting[state]

    def can_go_on(self, state: int) -> bool:
        """Whether any byte may follow."""
        return state != DEAD and bool(self._threads[state])

    def step(self, state: int, byte: int) -> int:
        """The state after one more byte.  Raises `GrammarError` where there are too many states."""
        return DEAD if state == DEAD else self.step_class(state, int(self._program.classes[byte]))

    def step_class(self, state: int, byte_class: int) -> int:
        """The state after one more byte of a class."""
        known = int(self._table[state, byte_class])
        if known != UNKNOWN:
            return known
        byte = self._program.samples[byte_class]
        follow: dict[int, frozenset[int]] = {}
        for number, callers in self._threads[state].items():
            read = self._program.steps[number]
            assert isinstance(read, Read)
            if read.first <= byte <= read.last:
                follow[read.follow] = follow.get(read.follow, frozenset()) | callers
        found = self._behind(follow) if follow else DEAD
        self._table[state, byte_class] = found
        return found

    def next_states(self, states: NDArray[np.int64], classes: NDArray[np.uint8]) -> NDArray[np.int64]:
        """int64[n]: the state, or DEAD, behind each pair of a state and a class of bytes."""
        found = self._table[states, classes]
        unknown = found == UNKNOWN
        if unknown.any():
            pairs = states[unknown] * len(self._program.samples) + classes[unknown]
            for pair in np.unique(pairs).tolist():
                self.step_class(*divmod(pair, len(self._program.samples)))
            found = self._table[states, classes]
        return found.astype(np.int64)

    def follow(self, state: int, text: bytes) -> int:
        """The state after text."""
        for byte in text:
            if state == DEAD:
                break
            byte_class = self._classes[byte]
            known = int(self._table[state, byte_class])
            state = self.step_class(state, byte_class) if known == UNKNOWN else known
        return state

    def _behind(self, follow: dict[int, frozenset[int]]) -> int:
        """The state that is reached from these steps; many bytes lead to the same ones."""
        key = frozenset(follow.items())
        number = self._numbers_behind.get(key)
        if number is None:
            number = self._numbers_behind[key] = self._state(follow)
        return number

    def _state(self, begin: dict[int, frozenset[int]]) -> int:
        """The number of the state that is reached from these steps without reading anything."""
        threads, accepting = _Closure(self._program, self._caller_records, self._caller).of(begin)
        if not threads and not accepting:
            return DEAD
        key = (frozenset(threads.items()), accepting)
        number = self._numbers.get(key)
        if number is None:
            number = len(self._threads)
            if number >= MOST_STATES:
                raise GrammarError(
                    "The grammar leads to too many states to be followed.", "Use a simpler grammar."
                )
            self._numbers[key] = number
            self._threads.append(threads)
            self._accepting.append(accepting)
            if number >= len(self._table):
                self._table = np.concatenate([self._table, np.full_like(self._table, UNKNOWN)])
        return number

    def _caller(self, follow: int, callers: frozenset[int]) -> int:
        key = (follow, callers)
        number = self._callers.get(key)
        if number is None:
            number = self._callers[key] = len(self._caller_records)
            self._caller_records.append(key)
        return number


class _Closure:
    """All steps that are reached without reading a byte.

    A caller made on the way, known by the step that calls, is written as the negative number -1 - step until
    all of its own callers are known: they never go round in a circle, as no rule begins with itself.  A rule
    that returns to such a caller has read nothing; that way is taken at once when the rule is called, as
    rules that may be empty are known.
    """

    def __init__(self, program: Program, records: list[tuple[int, frozenset[int]]], intern: Intern) -> None:
        self._program = program
        self._records = records
        self._intern = intern
        self._reached: dict[int, set[int]] = {}
        self._new: dict[int, set[int]] = {}
        self._made: dict[int, int] = {}
        self._waiting: list[tuple[int, int]] = []
        self._accepting = False

    def of(self, begin: dict[int, frozenset[int]]) -> tuple[Threads, bool]:
        for step, callers in begin.items():
            for caller in callers:
                self._reach(step, caller)
        reads: dict[int, None] = {}
        while self._waiting:
            number, caller = self._waiting.pop()
            match self._program.steps[number]:
                case Read():
                    reads[number] = None
                case Fork(follow):
                    for way in follow:
                        self._reach(way, caller)
                case Call() as call:
                    self._call(number, call, caller)
                case Return():
                    self._return(caller)
        known: dict[frozenset[int], frozenset[int]] = {}  # most steps have the same callers
        threads: Threads = {}
        for number in reads:
            callers = frozenset(self._reached[number])
            if callers not in known:
                known[callers] = self._interned(callers)
            threads[number] = known[callers]
        return threads, self._accepting

    def _reach(self, step: int, caller: int) -> None:
        known = self._reached.setdefault(step, set())
        if caller not in known:
            known.add(caller)
            self._waiting.append((step, caller))

    def _call(self, number: int, call: Call, caller: int) -> None:
        start = self._program.starts[call.rule]
        if isinstance(self._program.steps[call.follow], Return):
            self._reach(start, caller)  # nothing is left to do behind it, so chains of last calls do not grow
            return
        self._new.setdefault(number, set()).add(caller)
        self._reach(start, -1 - number)
        if call.rule in self._program.nullable:
            self._reach(call.follow, caller)

    def _return(self, caller: int) -> None:
        if caller == OUTERMOST:
            self._accepting = True
        elif caller > OUTERMOST:
            follow, callers = self._records[caller]
            for outer in callers:
                self._reach(follow, outer)

    def _interned(self, callers: frozenset[int]) -> frozenset[int]:
        """The callers with those made on the way turned into records, the outer ones first."""
        waiting = [caller for caller in callers if caller < 0]
        while waiting:
            new = waiting[-1]
            outer = self._new[-1 - new]
            missing = [caller for caller in outer if caller < 0 and caller not in self._made]
            if missing and new not in self._made:
                waiting += missing
                continue
            waiting.pop()
            if new not in self._made:
                call = self._program.steps[-1 - new]
                assert isinstance(call, Call)
                self._made[new] = self._intern(call.follow, self._known(outer))
        return self._known(callers)

    def _known(self, callers: Iterable[int]) -> frozenset[int]:
        return frozenset(caller if caller >= 0 else self._made[caller] for caller in callers)
