"""The parts that every JSON text is made of (RFC 8259), as expressions of a grammar.

What models write is kept short of what JSON allows where nothing is lost: one space or line break between
signs, numbers that a double can hold, no halves of surrogate pairs.
"""

from __future__ import annotations

import json
from typing import Any

from engine.errors import GrammarError
from engine.grammar.expressions import (
    LAST_CODE_POINT,
    Characters,
    Expression,
    Reference,
    Repeat,
    all_but,
    characters,
    choice,
    common,
    literal,
    one_of,
    optional,
    sequence,
)

ANY_CHARACTER = Characters(((0, LAST_CODE_POINT),))
DIGIT = characters((0x30, 0x39))
NOT_ZERO = characters((0x31, 0x39))

GAP = optional(choice((literal(" "), sequence(literal("\n"), Repeat(one_of(" \t"), 0, 20)))))
"""White space where JSON allows it: none, a space, or a line break and an indent."""

COMMA = sequence(GAP, literal(","), GAP)
COLON = sequence(GAP, literal(":"), GAP)

MOST_DIGITS = 15
"""Of a whole part: a double holds them all."""

FRACTION = sequence(literal("."), Repeat(DIGIT, 1, MOST_DIGITS))
EXPONENT = sequence(one_of("eE"), optional(one_of("+-")), Repeat(DIGIT, 1, 2))
NATURAL = choice((literal("0"), sequence(NOT_ZERO, Repeat(DIGIT, 0, MOST_DIGITS - 1))))
INTEGER = sequence(optional(literal("-")), NATURAL)
NUMBER = sequence(INTEGER, optional(FRACTION), optional(EXPONENT))

_NEED_ESCAPES = characters((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
_SHORT_ESCAPES = {'"': '"', "\\": "\\", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_HEX = characters((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))
_ANY_CODE = choice(
    (
        sequence(
            characters((0x30, 0x39), (0x41, 0x43), (0x45, 0x46), (0x61, 0x63), (0x65, 0x66)), _HEX, _HEX, _HEX
        ),
        sequence(one_of("dD"), characters((0x30, 0x37)), _HEX, _HEX),
    )
)
"""Four hexadecimal digits, surrogates left out."""

PLAIN_CHARACTER = all_but(_NEED_ESCAPES)
"""A character that a JSON string holds as it is."""

VALUE = "JSON value"
"""The rule of any value; `any_value_rules` defines it."""


def written(wanted: Characters) -> Expression:
    """One character of wanted, as it is written within a JSON string."""
    ways: list[Expression] = []
    plain = common(wanted, PLAIN_CHARACTER)
    if plain.ranges:
        ways.append(plain)
    escaped = [
        code for first, last in common(wanted, _NEED_ESCAPES).ranges for code in range(first, last + 1)
    ]
    ways += [literal("\\" + _SHORT_ESCAPES.get(chr(code), f"u{code:04x}")) for code in escaped]
    if wanted == ANY_CHARACTER:
        ways.append(sequence(literal("\\u"), _ANY_CODE))
    return choice(ways)


def string_of(content: Expression) -> Expression:
    """A JSON string with this (already escaped) content."""
    return sequence(literal('"'), content, literal('"'))


STRING = string_of(Repeat(written(ANY_CHARACTER), 0, None))


def object_of(members: Expression) -> Expression:
    return sequence(literal("{"), GAP, members, GAP, literal("}"))


def array_of(elements: Expression) -> Expression:
    return sequence(literal("["), GAP, elements, GAP, literal("]"))


def member(key: Expression, value: Expression) -> Expression:
    return sequence(key, COLON, value)


def constant(value: Any) -> Expression:
    """Exactly this value.  Raises `GrammarError` for numbers and texts that JSON cannot hold."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (
        ValueError,
        RecursionError,
    ) as error:  # half a surrogate pair is a UnicodeEncodeError, a ValueError
        raise GrammarError(f"The schema asks for a value that cannot be written: {value!r:.100}.") from error
    return literal(text)


def list_of(item: Expression) -> Expression:
    """None, one or more, with commas between."""
    return optional(sequence(item, Repeat(sequence(COMMA, item), 0, None)))


def any_value_rules() -> dict[str, Expression]:
    """The rule `VALUE`, and what it needs."""
    value = Reference(VALUE)
    return {
        VALUE: choice(
            (
                object_of(list_of(member(STRING, value))),
                array_of(list_of(value)),
                STRING,
                NUMBER,
                literal("true"),
                literal("false"),
                literal("null"),
            )
        )
    }
