"""Makes a grammar of a JSON Schema (2020-12, and what is common of older drafts).

Every text of the grammar is valid JSON that the schema accepts; not every such JSON is a text of the grammar:
members come in the order of `properties`, none beside them unless `additionalProperties` asks for it, numbers
are written plainly.  What cannot be honoured is refused by name: no reply is ever merely likely to fit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NoReturn

from engine.errors import GrammarError
from engine.grammar.expressions import (
    EMPTY,
    MOST_REPETITIONS,
    Choice,
    Expression,
    Grammar,
    Reference,
    Repeat,
    Sequence,
    choice,
    literal,
    optional,
    sequence,
)
from engine.grammar.json_formats import PATTERNS
from engine.grammar.json_keywords import (
    ASSERTIONS,
    COMBINATIONS,
    Plain,
    Schema,
    checked,
    equal,
    refuse,
    type_of,
    types_of,
)
from engine.grammar.json_numbers import Bound, integers, numbers
from engine.grammar.json_objects import Member, members, named, other_keys
from engine.grammar.json_patterns import pattern_content
from engine.grammar.json_schema_parts import SchemaParts
from engine.grammar.json_values import (
    ANY_CHARACTER,
    COMMA,
    STRING,
    VALUE,
    any_value_rules,
    array_of,
    constant,
    list_of,
    member,
    object_of,
    string_of,
    written,
)

MOST_CHARACTERS = 1_000_000
"""Of the text of a schema."""

DEEPEST = 60
"""Schemas within schemas; deeper ones have to use references."""


def read_json_schema(text: str) -> Grammar:
    """The grammar of a schema written in JSON.  Raises `GrammarError` naming what cannot be honoured."""
    if len(text) > MOST_CHARACTERS:
        raise GrammarError(f"The schema is longer than {MOST_CHARACTERS:,} characters.")
    try:
        document = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"The schema is no JSON: {str(error)[:200]}.") from error
    return schema_grammar(document)


def schema_grammar(document: Schema) -> Grammar:
    """The same for a schema that has been read already."""
    builder = _Builder(document)
    root = builder.expression(document, "#")
    return Grammar({"root": root, **builder.rules})


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


class _Builder:
    def __init__(self, document: Schema) -> None:
        self.rules = any_value_rules()
        self._parts = SchemaParts(document)
        self._depth = 0

    def expression(self, schema: Any, where: str) -> Expression:
        """The texts of values that fit the schema."""
        schema = checked(schema, where)
        if schema is False:
            refuse(where, "no value fits it")
        keys = set() if schema is True else (ASSERTIONS | COMBINATIONS) & schema.keys()
        if not keys:
            return Reference(VALUE)
        assert isinstance(schema, Mapping)
        if keys == {"$ref"}:
            return self._reference(schema["$ref"], where)
        self._depth += 1
        if self._depth > DEEPEST:
            refuse(where, f"schemas are nested more than {DEEPEST} deep")
        found = self._combined(schema, keys, where)
        self._depth -= 1
        # Lists and optional members name their parts twice: without rules they would double at every level.
        return named(found, self.rules) if isinstance(found, Sequence | Choice) else found

    def _combined(self, schema: Mapping[str, Any], keys: set[str], where: str) -> Expression:
        # References within stay references, so that schemas may contain themselves.
        if keys in ({"anyOf"}, {"oneOf"}) or (keys == {"allOf"} and len(schema["allOf"]) == 1):
            (key,) = keys
            options = [option for option in self._parts.options(schema, key, where) if option is not False]
            found = [
                self.expression(option, f"{where}/{key}/{index}") for index, option in enumerate(options)
            ]
        else:
            found = [self._plain(plain, where) for plain in self._parts.alternatives(schema, where)]
        if not found:
            refuse(where, "no value fits it")
        return choice(found)

    def _reference(self, pointer: Any, where: str) -> Expression:
        schema = self._parts.resolve(pointer, where)
        if pointer not in self.rules:
            self.rules[pointer] = EMPTY  # until it is known; the schema may contain itself
            self.rules[pointer] = self.expression(schema, pointer)
        return Reference(pointer)

    def _plain(self, plain: Plain, where: str) -> Expression:
        if "const" in plain or "enum" in plain:
            return choice(constant(value) for value in _constants(plain, where))
        types = types_of(plain, where)
        if "number" in types and "integer" in types:
            types.remove("integer")
        return choice(self._of_type(name, plain, where) for name in types)

    def _of_type(self, name: str, plain: Plain, where: str) -> Expression:
        match name:
            case "object":
                return self._object(plain, where)
            case "array":
                return self._array(plain, where)
            case "string":
                return _string(plain, where)
            case "integer":
                return integers(*_bounds(plain))
            case "number":
                return numbers(*_bounds(plain))
            case "boolean":
                return choice((literal("true"), literal("false")))
        return literal("null")

    def _object(self, plain: Plain, where: str) -> Expression:
        named: Mapping[str, Any] = plain.get("properties", {})
        required: list[str] = plain.get("required", [])
        others = plain.get("additionalProperties", not named)
        if not named and not required and others is True:
            return object_of(list_of(member(STRING, Reference(VALUE))))
        unnamed = plain.get("additionalProperties", True)
        schemas = {**named, **{name: unnamed for name in required if name not in named}}
        found = []
        for name, schema in schemas.items():
            if schema is False and name in required:
                refuse(where, f"the member {name!r:.100} is required, but no value fits it")
            if schema is not False:
                value = self.expression(schema, f"{where}/properties/{name}")
                found.append(Member(constant(name), value, name in required))
        more = None
        if others is not False:
            value = self.expression(others, f"{where}/additionalProperties")
            more = member(other_keys(schemas, self.rules), value)
        return object_of(members(found, more, self.rules))

    def _array(self, plain: Plain, where: str) -> Expression:
        first, rest = plain.get("prefixItems", []), plain.get("items", True)
        if isinstance(rest, list):  # as drafts before 2020-12 have it
            first, rest = rest, plain.get("additionalItems", True)
        least = plain.get("minItems", 0)
        most = min(plain["maxItems"], MOST_REPETITIONS) if "maxItems" in plain else None
        if (least > len(first) and rest is False) or (most is not None and most < least):
            refuse(where, f"no array of at least {least} items fits it")
        items = [self.expression(item, f"{where}/items/{index}") for index, item in enumerate(first[:most])]
        # Items that nobody describes come only where there have to be some.
        described = "additionalItems" in plain or (
            not first or (first is plain.get("prefixItems") and "items" in plain)
        )
        beyond = rest is not False and (described or least > len(items))
        tail: Expression = EMPTY
        if beyond and (most is None or most > len(items)):
            item = self.expression(rest, f"{where}/items")
            fewest, longest = max(0, least - len(items)), None if most is None else most - len(items)
            if not items:
                return array_of(_repeated_list(item, fewest, longest))
            tail = Repeat(sequence(COMMA, item), fewest, longest)
        for index in range(len(items) - 1, -1, -1):
            tail = sequence(COMMA, items[index], tail) if index else sequence(items[0], tail)
            tail = tail if index < least else optional(tail)
        return array_of(tail)


def _repeated_list(item: Expression, least: int, most: int | None) -> Expression:
    if most == 0:
        return EMPTY
    found = sequence(
        item, Repeat(sequence(COMMA, item), max(0, least - 1), None if most is None else most - 1)
    )
    return found if least else optional(found)


def _constants(plain: Plain, where: str) -> list[Any]:
    """The values of const and enum that have one of the types."""
    beside = sorted(plain.keys() - {"const", "enum", "type"})
    if beside:
        refuse(where, f"values that are listed, and {beside[0]!r} as well")
    values = plain.get("enum", [plain.get("const")])
    if "const" in plain:
        values = [value for value in values if equal(value, plain["const"])]
    if "type" in plain:
        types = {*types_of(plain, where)} | ({"integer"} if "number" in types_of(plain, where) else set())
        values = [value for value in values if type_of(value) in types]
    if not values:
        refuse(where, "none of the listed values fits it")
    return list(values)


def _string(plain: Plain, where: str) -> Expression:
    length = {"minLength", "maxLength"} & plain.keys()
    others = {"pattern", "format"} & plain.keys()
    if len(others) > 1 or (others and length):
        refuse(where, f"{' and '.join(sorted(length | others))} cannot be honoured together")
    if "pattern" in plain:
        return string_of(pattern_content(plain["pattern"]))
    if "format" in plain:
        if plain["format"] not in PATTERNS:
            refuse(where, f"the format {plain['format']!r:.50} is unknown (known: {', '.join(PATTERNS)})")
        return string_of(pattern_content(f"^({PATTERNS[plain['format']]})$"))
    if not length:
        return STRING
    least, most = plain.get("minLength", 0), plain.get("maxLength")
    if most is not None and most < least:
        refuse(where, f"no text has at least {least} and at most {most} characters")
    return string_of(Repeat(written(ANY_CHARACTER), least, most and min(most, MOST_REPETITIONS)))


def _bounds(plain: Plain) -> tuple[Bound | None, Bound | None]:
    """The lower and the upper bound of numbers, the narrower where there are two."""
    low = (
        [(Decimal(str(plain["minimum"])), plain.get("exclusiveMinimum") is True)]
        if "minimum" in plain
        else []
    )
    high = (
        [(Decimal(str(plain["maximum"])), plain.get("exclusiveMaximum") is True)]
        if "maximum" in plain
        else []
    )
    for key, bounds in (("exclusiveMinimum", low), ("exclusiveMaximum", high)):
        if key in plain and not isinstance(plain[key], bool):
            bounds.append((Decimal(str(plain[key])), True))
    upper = min(high, key=lambda bound: (bound[0], not bound[1]), default=None)
    return max(low, default=None), upper
