"""A grammar as plain data, and the check that it can be followed.

A grammar describes texts as sequences of Unicode code points.  It is context-free: rules may call each other
and themselves, but not themselves as the first thing they do (left recursion).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.errors import GrammarError

LAST_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
"""No text holds these code points; UTF-8 has no form for them."""

MOST_REPETITIONS = 10_000
"""Of one repetition with bounds: more does not fit a context."""

DEEPEST = 200
"""Expressions within expressions."""

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of these ranges of code points, both ends included, sorted and apart."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; none at all is the empty text."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """At least minimum times, at most maximum times (None: without end)."""

    item: Expression
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Reference:
    """What the rule of that name describes."""

    rule: str


Expression = Characters | Sequence | Choice | Repeat | Reference

EMPTY = Sequence(())


@dataclass(frozen=True, eq=False)
class Grammar:
    """rules by name; root: the rule of whole texts.  Raises `GrammarError` where it cannot be followed."""

    rules: Mapping[str, Expression]
    root: str = "root"

    def __post_init__(self) -> None:
        if self.root not in self.rules:
            raise GrammarError(f"The grammar has no rule named {self.root!r}.")
        for name, expression in self.rules.items():
            if _depth(expression) > DEEPEST:
                raise GrammarError(f"The rule {name!r} is nested more than {DEEPEST} deep.")
            for part in parts_of(expression):
                _check_part(self, name, part)
        _refuse_left_recursion(self)
        _refuse_endless_rules(self)

    @property
    def nullable(self) -> frozenset[str]:
        """The rules that describe the empty text too."""
        return _rules_that_can(self.rules, characters=False)


def characters(*ranges: Range) -> Characters:
    """The characters of any ranges, in any order."""
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return Characters(tuple(merged))


def all_but(excluded: Characters) -> Characters:
    """Every other character."""
    apart: list[Range] = []
    start = 0
    for first, last in excluded.ranges:
        if first > start:
            apart.append((start, first - 1))
        start = last + 1
    if start <= LAST_CODE_POINT:
        apart.append((start, LAST_CODE_POINT))
    return Characters(tuple(apart))


def common(a: Characters, b: Characters) -> Characters:
    """The characters of both."""
    pairs = ((max(x[0], y[0]), min(x[1], y[1])) for x in a.ranges for y in b.ranges)
    return characters(*(pair for pair in pairs if pair[0] <= pair[1]))


def one_of(text: str) -> Characters:
    """One of the characters of text."""
    return characters(*((ord(character), ord(character)) for character in text))


def literal(text: str) -> Expression:
    """Exactly text."""
    return Sequence(tuple(one_of(character) for character in text))


def optional(item: Expression) -> Expression:
    return Repeat(item, 0, 1)


def sequence(*items: Expression) -> Expression:
    return items[0] if len(items) == 1 else Sequence(items)


def choice(options: Iterable[Expression]) -> Expression:
    """One of the options, each listed once."""
    apart = tuple(dict.fromkeys(options))
    return apart[0] if len(apart) == 1 else Choice(apart)


def parts_of(expression: Expression) -> Iterator[Expression]:
    """The expression and all that it is made of, rules it refers to left out."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += children(part)


def children(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Sequence(items):
            return items
        case Choice(options):
            return options
        case Repeat(item):
            return (item,)
    return ()


def is_nullable(expression: Expression, nullable_rules: Collection[str]) -> bool:
    """Whether it describes the empty text, given the rules that do."""
    return _can(expression, nullable_rules, characters=False)


def _can(expression: Expression, rules: Collection[str], characters: bool) -> bool:
    """Whether there is a way through it, given the rules with one.  characters: whether they may be on it."""
    match expression:
        case Characters():
            return characters
        case Reference(rule):
            return rule in rules
        case Sequence(items):
            return all(_can(item, rules, characters) for item in items)
        case Choice(options):
            return any(_can(option, rules, characters) for option in options)
        case Repeat(item, minimum):
            return minimum == 0 or _can(item, rules, characters)


def _rules_that_can(rules: Mapping[str, Expression], characters: bool) -> frozenset[str]:
    found: set[str] = set()
    names = list(rules)
    while True:
        before = len(found)
        for name in names:
            if name not in found and _can(rules[name], found, characters):
                found.add(name)
        if len(found) == before:
            return frozenset(found)
        names.reverse()  # rules mostly call later ones, or earlier ones


def _depth(expression: Expression) -> int:
    depth, level = 0, [expression]
    while level and depth <= DEEPEST:
        depth, level = depth + 1, [child for part in level for child in children(part)]
    return depth


def _check_part(grammar: Grammar, name: str, part: Expression) -> None:
    match part:
        case Reference(rule) if rule not in grammar.rules:
            raise GrammarError(f"The rule {name!r} uses {rule!r}, which is not defined.")
        case Choice(()):
            raise GrammarError(f"The rule {name!r} allows nothing in one place.")
        case Characters(ranges) if not any(
            first < SURROGATES[0] or last > SURROGATES[1] for first, last in ranges
        ):
            raise GrammarError(f"The rule {name!r} allows no character in one place.")
        case Repeat(_, minimum, maximum):
            if maximum is not None and minimum > maximum:
                raise GrammarError(
                    f"The rule {name!r} repeats at least {minimum} and at most {maximum} times."
                )
            if max(minimum, maximum or 0) > MOST_REPETITIONS:
                raise GrammarError(f"The rule {name!r} counts more than {MOST_REPETITIONS:,} repetitions.")


def _refuse_left_recursion(grammar: Grammar) -> None:
    nullable = grammar.nullable
    first = {name: tuple(_first_rules(rule, nullable)) for name, rule in grammar.rules.items()}
    done: set[str] = set()
    for start in grammar.rules:
        path: dict[str, None] = {}
        waiting: list[tuple[str, bool]] = [(start, False)]
        while waiting:
            name, leaving = waiting.pop()
            if leaving:
                done.add(path.popitem()[0])
            elif name in path:
                raise GrammarError(
                    f"The rule {name!r} begins with itself (left recursion).",
                    "Write it as a repetition: item (separator item)*.",
                )
            elif name not in done:
                path[name] = None
                waiting.append((name, True))
                waiting += [(called, False) for called in first[name]]


def _refuse_endless_rules(grammar: Grammar) -> None:
    """Refuses rules that describe no finite text."""
    ending = _rules_that_can(grammar.rules, characters=True)
    for name in grammar.rules:
        if name not in ending:
            raise GrammarError(f"The rule {name!r} describes only texts without an end.")


def _first_rules(expression: Expression, nullable: frozenset[str]) -> Iterator[str]:
    """The rules that may be called before any character is read."""
    match expression:
        case Reference(rule):
            yield rule
        case Sequence(items):
            for item in items:
                yield from _first_rules(item, nullable)
                if not is_nullable(item, nullable):
                    return
        case Choice() | Repeat():
            for part in children(expression):
                yield from _first_rules(part, nullable)
