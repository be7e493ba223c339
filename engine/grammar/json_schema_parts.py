"""Takes JSON Schemas apart: references, and the combinations allOf, anyOf and oneOf.

`SchemaParts.alternatives` turns any schema into plain ones, without those keywords: a value has to fit one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any
from urllib.parse import unquote

from engine.grammar.json_keywords import ASSERTIONS, Plain, Schema, checked, equal, refuse, type_of

DEEPEST = 40
"""References and combinations within one another."""

MOST_ALTERNATIVES = 200

MOST_PARTS = 100_000
"""Schemas looked at for alternatives: references let a short document name the same ones over and over."""


class SchemaParts:
    """The parts of one document."""

    def __init__(self, document: Schema) -> None:
        self._document = document
        self._n_looked_at = 0

    def resolve(self, pointer: str, where: str) -> Schema:
        """The schema at a reference such as #/$defs/node."""
        if not pointer.startswith("#") or pointer[1:2] not in ("", "/"):
            refuse(where, f"{pointer!r:.100} refers to something outside of the schema")
        found: Any = self._document
        for part in unquote(pointer[1:]).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(key)] if isinstance(found, list) else found[key]
            except (KeyError, IndexError, ValueError, TypeError):
                refuse(where, f"{pointer!r:.100} refers to nothing")
        return checked(found, pointer)

    def alternatives(self, schema: Schema, where: str, depth: int = 0) -> list[Plain]:
        """Schemas without references and combinations; a value fits the schema where it fits one of them."""
        if depth > DEEPEST:
            refuse(where, f"references and combinations are nested more than {DEEPEST} deep")
        self._n_looked_at += 1
        if self._n_looked_at > MOST_PARTS:
            refuse(where, f"references and combinations lead to more than {MOST_PARTS:,} schemas")
        if schema is True:
            return [{}]
        if schema is False:
            return []
        assert isinstance(schema, Mapping)
        found: list[Plain] = [{key: value for key, value in schema.items() if key in ASSERTIONS}]
        for each in self._conjunction(schema, where, depth):
            others = [part for option in each for part in self.alternatives(option, where, depth + 1)]
            merged = (merge(one, other, where) for one in found for other in others)
            found = [plain for plain in merged if plain is not None]
            if len(found) > MOST_ALTERNATIVES:
                refuse(where, f"its combinations have more than {MOST_ALTERNATIVES} alternatives")
        return found

    def _conjunction(self, schema: Mapping[str, Any], where: str, depth: int) -> Iterator[list[Schema]]:
        """What the schema demands beside its own keywords: of each list, one."""
        if "$ref" in schema:
            yield [self.resolve(schema["$ref"], where)]
        for key in ("allOf", "anyOf", "oneOf"):
            if key in schema:
                options = self.options(schema, key, where, depth)
                if key == "allOf":
                    yield from ([option] for option in options)
                else:
                    yield options

    def options(self, schema: Mapping[str, Any], key: str, where: str, depth: int = 0) -> list[Schema]:
        """The schemas of allOf, anyOf or oneOf, which for oneOf exclude each other."""
        options = [checked(option, f"{where}/{key}/{index}") for index, option in enumerate(schema[key])]
        if key == "oneOf":
            apart = [self.alternatives(option, f"{where}/{key}", depth + 1) for option in options]
            for one, other in combinations(range(len(options)), 2):
                if not all(_exclude(a, b) for a in apart[one] for b in apart[other]):
                    refuse(
                        f"{where}/{key}",
                        f"a value may fit both option {one} and option {other} (anyOf allows that)",
                    )
        return options


def merge(one: Plain, other: Plain, where: str) -> Plain | None:
    """A schema that accepts what both accept; None where that is nothing."""
    both = dict(one)
    for key, value in other.items():
        if key not in both:
            both[key] = value
        elif both[key] != value:
            both[key] = _merged(key, both[key], value, where)
    if "const" in one and "const" in other and not equal(one["const"], other["const"]):
        return None
    if both.get("type") == [] or both.get("enum") == []:
        return None
    return _with_merged_properties(both, one, other)


def _merged(key: str, a: Any, b: Any, where: str) -> Any:
    match key:
        case "type":
            return _common_types(a, b)
        case "required":
            return list(dict.fromkeys((*a, *b)))
        case "enum":
            return [value for value in a if any(equal(value, other) for other in b)]
        case "const" | "properties" | "additionalProperties":
            return a
        case "items":
            return {"allOf": [a, b]}
        case "minItems" | "minLength" | "minimum" | "exclusiveMinimum":
            return max(a, b)
        case "maxItems" | "maxLength" | "maximum" | "exclusiveMaximum":
            return min(a, b)
    refuse(where, f"two different values of {key!r} have to hold together")


def _common_types(a: Any, b: Any) -> list[str]:
    first, second = (value if isinstance(value, list) else [value] for value in (a, b))
    common = [name for name in first if name in second]
    # Every integer is a number.
    common += (
        ["integer"] if "integer" in {*first, *second} - {*common} and "number" in {*first, *second} else []
    )
    return common


def _with_merged_properties(both: Plain, one: Plain, other: Plain) -> Plain | None:
    """Members that only one side names have to fit what the other says about members it does not name."""
    if "properties" not in both and "additionalProperties" not in both:
        return both
    named: dict[str, Schema] = {}
    for side, opposite in ((one, other), (other, one)):
        rest = opposite.get("additionalProperties", True)
        for name, schema in side.get("properties", {}).items():
            second = opposite.get("properties", {}).get(name, rest)
            if second is False or schema is False:
                named[name] = False
            elif name not in named:
                named[name] = schema if second in (True, {}) else {"allOf": [schema, second]}
    if any(named.get(name) is False for name in both.get("required", ())):
        return None
    both["properties"] = named
    rests = [side["additionalProperties"] for side in (one, other) if "additionalProperties" in side]
    if rests:
        both["additionalProperties"] = False if False in rests else {"allOf": rests}
    return both


def _exclude(a: Plain, b: Plain) -> bool:
    """Whether it is plain that no value fits both."""
    values_a, values_b = _values(a), _values(b)
    if values_a is not None and values_b is not None:
        return not any(equal(x, y) for x in values_a for y in values_b)
    types_a, types_b = _known_types(a), _known_types(b)
    if types_a is not None and types_b is not None and not types_a & types_b:
        return True
    if types_a == types_b == {"object"}:
        shared = set(a.get("required", ())) & set(b.get("required", ()))
        return any(_exclude_members(a, b, name) for name in shared)
    return False


def _exclude_members(a: Plain, b: Plain, name: str) -> bool:
    first, second = (side.get("properties", {}).get(name, True) for side in (a, b))
    return isinstance(first, Mapping) and isinstance(second, Mapping) and _exclude(dict(first), dict(second))


def _values(plain: Plain) -> list[Any] | None:
    if "const" in plain:
        return [plain["const"]]
    values = plain.get("enum")
    return values if isinstance(values, list) else None


def _known_types(plain: Plain) -> set[str] | None:
    """The types, integers being numbers; None where any may come."""
    values = _values(plain)
    if values is not None:
        names = {type_of(value) for value in values}
    elif "type" in plain:
        names = set(plain["type"] if isinstance(plain["type"], list) else [plain["type"]])
    else:
        return None
    return {"number" if name == "integer" else name for name in names}
