"""A grammar compiled to small steps over bytes.

A text is followed byte by byte: a `Read` takes one byte, a `Call` runs a rule and goes on behind it, a `Fork`
goes several ways at once.  Numbers of steps are places in `Program.steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from engine.errors import GrammarError
from engine.grammar.expressions import (
    Characters,
    Choice,
    Expression,
    Grammar,
    Reference,
    Repeat,
    Sequence,
    parts_of,
)
from engine.grammar.utf8 import byte_ranges

MOST_STEPS = 200_000
"""Of a compiled grammar: some 40 MB of memory, a second to compile."""

RETURN = 0
"""The step that ends a rule."""

_BIG = 8
"""A repeated part with more pieces than this becomes a rule of its own."""


@dataclass(frozen=True, slots=True)
class Return:
    """The rule is at its end."""


@dataclass(frozen=True, slots=True)
class Read:
    """Takes a byte from first to last and goes on at follow."""

    first: int
    last: int
    follow: int


@dataclass(frozen=True, slots=True)
class Fork:
    """Goes on at each of these."""

    follow: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Runs the rule that begins at step start; then goes on at follow."""

    rule: str
    follow: int


Step = Return | Read | Fork | Call


@dataclass(frozen=True, eq=False)
class Program:
    """starts: first step of each rule; nullable: rules that describe the empty text.

    classes: uint8[256], the class of each byte: no step tells bytes of one class apart.
    samples: a byte of each class.
    """

    steps: tuple[Step, ...]
    starts: dict[str, int]
    nullable: frozenset[str]
    root: str
    classes: NDArray[np.uint8]
    samples: tuple[int, ...]


def program_of(grammar: Grammar) -> Program:
    """Of a grammar, compiled once for as long as the grammar lives.  Raises as `compile_grammar`."""
    program = _PROGRAMS.get(grammar)
    if program is None:
        program = _PROGRAMS[grammar] = compile_grammar(grammar)
    return program


_PROGRAMS: WeakKeyDictionary[Grammar, Program] = WeakKeyDictionary()


def compile_grammar(grammar: Grammar) -> Program:
    """Raises `GrammarError` where the grammar is too large."""
    builder = _Builder(grammar)
    starts = {}
    while builder.waiting:
        name = builder.waiting.pop()
        starts[name] = builder.steps_of(builder.rules[name], RETURN)
    steps = tuple(builder.steps)
    borders = {0} | {
        border for step in steps if isinstance(step, Read) for border in (step.first, step.last + 1)
    }
    samples = sorted(borders - {256})
    classes = np.searchsorted(samples, np.arange(256), side="right") - 1
    nullable = Grammar(builder.rules, grammar.root).nullable
    return Program(steps, starts, nullable, grammar.root, classes.astype(np.uint8), tuple(samples))


class _Builder:
    """Steps are built from the end of a text to its beginning, so that each knows what follows it."""

    def __init__(self, grammar: Grammar) -> None:
        self.steps: list[Step] = [Return()]
        self.rules = dict(grammar.rules)
        self.waiting = list(grammar.rules)
        self._own_rules: dict[Expression, str] = {}
        self._known: dict[Step, int] = {}

    def steps_of(self, expression: Expression, follow: int) -> int:
        """The first step of the expression, behind which follow comes."""
        match expression:
            case Characters(ranges):
                return self._characters(ranges, follow)
            case Reference(rule):
                return self._add(Call(rule, follow))
            case Sequence(items):
                for item in reversed(items):
                    follow = self.steps_of(item, follow)
                return follow
            case Choice(options):
                return self._fork([self.steps_of(option, follow) for option in options])
            case Repeat():
                return self._repeat(expression, follow)

    def _characters(self, ranges: tuple[tuple[int, int], ...], follow: int) -> int:
        ways = []
        for first, last in ranges:
            for forms in byte_ranges(first, last):
                way = follow
                for low, high in reversed(forms):
                    way = self._add(Read(low, high, way))
                ways.append(way)
        return self._fork(ways)

    def _repeat(self, repeat: Repeat, follow: int) -> int:
        item = repeat.item
        if sum(1 for _ in parts_of(item)) > _BIG:
            item = self._own_rule(item)
        if repeat.maximum is None:
            loop = len(self.steps)
            self._push(Fork(()))
            self.steps[loop] = Fork((self.steps_of(item, loop), follow))
            start = loop
        else:
            start = follow
            for _ in range(repeat.maximum - repeat.minimum):
                start = self._fork([self.steps_of(item, start), follow])
        for _ in range(repeat.minimum):
            start = self.steps_of(item, start)
        return start

    def _own_rule(self, item: Expression) -> Reference:
        name = self._own_rules.get(item)
        if name is None:
            name = self._own_rules[item] = (
                f"({len(self._own_rules)})"  # no notation allows brackets in a name
            )
            self.rules[name] = item
            self.waiting.append(name)
        return Reference(name)

    def _fork(self, ways: list[int]) -> int:
        apart = tuple(dict.fromkeys(ways))
        return apart[0] if len(apart) == 1 else self._add(Fork(apart))

    def _add(self, step: Step) -> int:
        """The number of the step; equal steps are kept once."""
        number = self._known.get(step)
        if number is None:
            number = self._known[step] = self._push(step)
        return number

    def _push(self, step: Step) -> int:
        if len(self.steps) >= MOST_STEPS:
            raise GrammarError(f"The grammar needs more than {MOST_STEPS:,} steps.", "Repeat fewer times.")
        self.steps.append(step)
        return len(self.steps) - 1
