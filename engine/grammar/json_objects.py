"""The members of JSON objects: in a fixed order, some of them optional, others allowed behind them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.grammar.expressions import (
    EMPTY,
    Expression,
    Reference,
    Repeat,
    all_but,
    characters,
    choice,
    literal,
    one_of,
    optional,
    sequence,
)
from engine.grammar.json_values import COMMA, PLAIN_CHARACTER, member, string_of

Rules = dict[str, Expression]


@dataclass(frozen=True, slots=True)
class Member:
    """key: the JSON string; value: what may stand behind the colon."""

    key: Expression
    value: Expression
    required: bool


def members(listed: Iterable[Member], more: Expression | None, rules: Rules) -> Expression:
    """The listed members in their order, then any number of more (a whole member; None: none).

    Adds to rules: each place in the list has a rule for going on after a member, and one for being the first.
    """
    following: Expression = EMPTY if more is None else Repeat(sequence(COMMA, more), 0, None)
    first: Expression = EMPTY if more is None else optional(sequence(more, following))
    for each in reversed(list(listed)):
        whole = member(each.key, each.value)
        next_first = sequence(whole, following)
        next_following = sequence(COMMA, whole, following)
        if not each.required:
            next_first, next_following = choice((next_first, first)), choice((next_following, following))
        first, following = _named(next_first, rules), _named(next_following, rules)
    return first


def other_keys(taken: Iterable[str], rules: Rules) -> Expression:
    """JSON strings, written without escapes, that are none of the names taken."""
    names = {name for name in taken if all(_is_plain(character) for character in name)}
    return string_of(_other_than(names, rules))


def _is_plain(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in PLAIN_CHARACTER.ranges)


def _other_than(names: set[str], rules: Rules) -> Expression:
    """Plain texts that are none of the names: they leave the tree of the names somewhere."""
    anything = Repeat(PLAIN_CHARACTER, 0, None)
    found: dict[str, Expression] = {}
    beginnings = {name[:length] for name in names for length in range(len(name) + 1)} or {""}
    branches: dict[str, str] = {}
    for beginning in beginnings - {""}:
        branches[beginning[:-1]] = branches.get(beginning[:-1], "") + beginning[-1]
    for beginning in sorted(beginnings, key=len, reverse=True):
        after = branches.get(beginning, "")
        outside = characters(*all_but(PLAIN_CHARACTER).ranges, *one_of(after).ranges)
        ways: list[Expression] = [sequence(all_but(outside), anything)]
        ways += [sequence(literal(character), found[beginning + character]) for character in sorted(after)]
        if beginning not in names:
            ways.append(EMPTY)
        found[beginning] = _named(choice(ways), rules)
    return found[""]


def _named(expression: Expression, rules: Rules) -> Expression:
    """A reference to a new rule, so that what is used twice is there once."""
    name = f"part {len(rules)}"
    rules[name] = expression
    return Reference(name)
