"""The keywords of JSON Schema: which are understood, which are refused, and that their values are sound."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from engine.errors import GrammarError

Schema = Mapping[str, Any] | bool
Plain = dict[str, Any]

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")

COMBINATIONS = frozenset(("$ref", "allOf", "anyOf", "oneOf"))

OF_TYPES: Mapping[str, tuple[str, ...]] = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
"""The keywords that say something about values of one type only."""

ASSERTIONS = frozenset(keyword for keywords in OF_TYPES.values() for keyword in keywords) | {
    "type",
    "enum",
    "const",
}

REFUSED = frozenset((
    "not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "multipleOf",
    "propertyNames", "patternProperties", "minProperties", "maxProperties", "dependencies",
    "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "nullable",
    "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
))  # fmt: skip
"""Keywords that would have to be honoured, and are not.  Unknown ones mean nothing, says JSON Schema."""

_WITHOUT_EFFECT: Mapping[str, tuple[Any, ...]] = {
    "uniqueItems": (False,),
    "minProperties": (0,),
    "patternProperties": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "dependencies": ({},),
    "unevaluatedProperties": (True, {}),
    "unevaluatedItems": (True, {}),
    "nullable": (False,),
}
"""Values with which such a keyword asks for nothing."""


def _is_number(value: Any) -> bool:
    # 1e400 is read as infinity.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) != math.inf


def _is_number_or_flag(value: Any) -> bool:
    return isinstance(value, bool) or _is_number(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


_SOUND: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "type": (
        lambda value: _is_text(value) or (_are_texts(value) and bool(value)),
        "a type or a list of types",
    ),
    "enum": (_are_schemas, "a list of values"),
    "properties": (lambda value: isinstance(value, Mapping), "an object of schemas"),
    "required": (_are_texts, "a list of names"),
    "prefixItems": (_are_schemas, "a list of schemas"),
    "allOf": (_are_schemas, "a list of schemas"),
    "anyOf": (_are_schemas, "a list of schemas"),
    "oneOf": (_are_schemas, "a list of schemas"),
    "$ref": (_is_text, "a reference"),
    "pattern": (_is_text, "a regular expression"),
    "format": (_is_text, "the name of a format"),
    "minimum": (_is_number, "a number"),
    "maximum": (_is_number, "a number"),
    "exclusiveMinimum": (_is_number_or_flag, "a number"),
    "exclusiveMaximum": (_is_number_or_flag, "a number"),
    **{key: (_is_count, "a count") for key in ("minItems", "maxItems", "minLength", "maxLength")},
}
"""What the value of a keyword has to be."""


def refuse(where: str, what: str) -> NoReturn:
    raise GrammarError(f"The schema cannot be honoured at {where}: {what}.", "Change or leave out that part.")


def checked(schema: Any, where: str) -> Schema:
    """The schema, if it is one and has no keyword that is refused."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        refuse(where, "a schema is an object, true or false")
    for key in REFUSED & schema.keys():
        if not any(schema[key] == value for value in _WITHOUT_EFFECT.get(key, ())):
            refuse(where, f"{key!r} is not supported")
    for key, (is_sound, wanted) in _SOUND.items():
        if key in schema and not is_sound(schema[key]):
            refuse(f"{where}/{key}", f"{wanted} is needed")
    return schema


def types_of(plain: Mapping[str, Any], where: str) -> list[str]:
    """The types that values may have; where none is given, those that other keywords speak of, or all."""
    if "type" in plain:
        listed = plain["type"] if isinstance(plain["type"], list) else [plain["type"]]
        unknown = [name for name in listed if name not in TYPES]
        if unknown or not listed:
            refuse(where, f"{unknown[0]!r:.50} is no type" if unknown else "the list of types is empty")
        return list(dict.fromkeys(listed))
    spoken_of = [name for name, keywords in OF_TYPES.items() if any(key in plain for key in keywords)]
    return spoken_of or [name for name in TYPES if name != "integer"]


def type_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case None:
            return "null"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case list():
            return "array"
    return "object"


def equal(a: Any, b: Any) -> bool:
    """As JSON Schema compares: 1 is 1.0, but not true."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
