"""The members of JSON objects: in a fixed order, some of them optional, others allowed behind them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.errors import GrammarError
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

MOST_CHARACTERS_OF_NAMES = 20_000
"""Of all names of an object beside which others may come; common beginnings count once."""


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
        first, following = named(next_first, rules), named(next_following, rules)
    return first


def other_keys(taken: Iterable[str], rules: Rules) -> Expression:
    """JSON strings, written without escapes, that are none of the names taken."""
    names = {name for name in taken if all(_is_plain(character) for character in name)}
    return string_of(_other_than(names, rules))


def _is_plain(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in PLAIN_CHARACTER.ranges)


def _other_than(names: set[str], rules: Rules) -> Expression:
    """Plain texts that are none of the names: they leave the tree of the names somewhere."""
    # Nodes of the tree: what each character leads to.  A node has a higher number than the one before it.
    tree: list[dict[str, int]] = [{}]
    ends = set()
    for name in names:
        node = 0
        for character in name:
            if character not in tree[node]:
                tree[node][character] = len(tree)
                tree.append({})
                if len(tree) > MOST_CHARACTERS_OF_NAMES:
                    raise GrammarError(
                        f"The names of the members have more than {MOST_CHARACTERS_OF_NAMES:,} characters.",
                        "Use shorter names, or leave out `additionalProperties`.",
                    )
            node = tree[node][character]
        ends.add(node)
    anything = Repeat(PLAIN_CHARACTER, 0, None)
    found: dict[int, Expression] = {}
    for node in reversed(range(len(tree))):
        outside = characters(*all_but(PLAIN_CHARACTER).ranges, *one_of("".join(tree[node])).ranges)
        ways: list[Expression] = [sequence(all_but(outside), anything)]
        ways += [
            sequence(literal(character), found[after]) for character, after in sorted(tree[node].items())
        ]
        if node not in ends:
            ways.append(EMPTY)
        found[node] = named(choice(ways), rules)
    return found[0]


def named(expression: Expression, rules: Rules) -> Expression:
    """A reference to a new rule, so that what is used twice is there once."""
    name = f"part {len(rules)}"
    rules[name] = expression
    return Reference(name)
