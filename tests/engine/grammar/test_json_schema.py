"""JSON Schemas: what is written under their grammars, judged by the library jsonschema; and refusals."""

import json
import random

import jsonschema
import pytest

from engine.errors import GrammarError
from engine.grammar.json_schema import read_json_schema, schema_grammar
from engine.grammar.program import compile_grammar
from tests.engine.grammar.following import accepts, follow, random_text

NODE = {
    "type": "object",
    "properties": {
        "value": {"type": "integer"},
        "below": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "required": ["value", "below"],
}
SCHEMAS = [
    True,
    {},
    {"title": "anything", "x-of-ours": 1},
    {"type": "object"},
    {"type": "boolean"},
    {"type": ["string", "null"], "maxLength": 3},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"enum": [1, "x", None, True, [1, {"a": 2}], '\u00e9\n"\\']},
    {"type": "string", "enum": ["a", 1, "b"]},
    {"const": {"a": [1, 2.5]}},
    {
        "type": "array",
        "items": {"type": "integer", "minimum": -37, "maximum": 1205},
        "minItems": 2,
        "maxItems": 5,
    },
    {"type": "array", "maxItems": 0},
    {"type": "array", "minItems": 1},
    {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "items": False,
        "minItems": 1,
    },
    {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "items": {"type": "null"},
        "minItems": 3,
        "maxItems": 4,
    },
    {"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 2, "maxItems": 3},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "null"}], "maxItems": 1},
    {
        "properties": {"a": {"type": "integer"}, "b": {}, "c": {"type": "null"}},
        "required": ["b"],
        "type": "object",
    },
    {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": False},
    {
        "type": "object",
        "properties": {"ab": {"type": "null"}, "abc": {"type": "boolean"}, "\u00e9": {}},
        "additionalProperties": {"type": "integer"},
    },
    {"type": "object", "required": ["x", "y"], "properties": {"y": {"const": 1}}},
    {"type": "object", "additionalProperties": {"type": "string"}, "required": ["x"]},
    {"type": "object", "properties": {"gone": False, "a": True}},
    {"$defs": {"node": NODE}, "$ref": "#/$defs/node"},
    {"$defs": {"a/b ~": {"type": "null"}}, "$ref": "#/$defs/a~1b%20~0"},
    {
        "type": "object",
        "properties": {"me": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["me"],
    },
    {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "null"}, False]},
    {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}, "a": {"maximum": 10}}, "required": ["b"]},
        ]
    },
    {
        "allOf": [{"$ref": "#/$defs/named"}],
        "description": "as pydantic writes it",
        "$defs": {"named": NODE, "node": NODE},
    },
    {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}},
        "required": ["kind"],
        "anyOf": [
            {"properties": {"size": {"type": "integer"}}, "required": ["size"]},
            {"properties": {"kind": {"const": "b"}}},
        ],
    },
    {
        "oneOf": [
            {
                "type": "object",
                "properties": {"k": {"const": "x"}, "n": {"type": "integer"}},
                "required": ["k"],
            },
            {"type": "object", "properties": {"k": {"const": "y"}}, "required": ["k"]},
            {"type": "string"},
        ]
    },
    {"type": "number", "minimum": 3, "anyOf": [{"maximum": 4}, {"type": "integer"}]},
    {"properties": {"a": {"type": "null"}}, "minLength": 2},
]
FORMATS = ["date", "time", "date-time", "duration", "uuid", "ipv4", "hostname", "email", "uri"]


def texts(schema, count, seed=1):
    automaton = follow(read_json_schema(json.dumps(schema)))
    chance = random.Random(seed)
    written = [random_text(automaton, chance) for _ in range(count)]
    found = [text.decode() for text in written if text is not None]
    assert len(found) > count // 2
    return found


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:60])
def test_whatever_is_written_fits(schema):
    for text in texts(schema, 30):
        jsonschema.validate(json.loads(text), schema, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name):
    schema = {"type": "string", "format": name}
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    for text in texts(schema, 60):
        jsonschema.validate(
            json.loads(text), schema, cls=jsonschema.Draft202012Validator, format_checker=checker
        )


def test_older_drafts():
    for text in texts({"type": "integer", "minimum": 3, "exclusiveMinimum": True, "maximum": 7}, 40):
        assert 3 < json.loads(text) <= 7
    schema = {
        "items": [{"type": "integer"}, {"type": "null"}],
        "additionalItems": {"const": 9},
        "minItems": 3,
    }
    for text in texts({"type": "array", **schema}, 40):
        jsonschema.validate(json.loads(text), schema, cls=jsonschema.Draft7Validator)


EXPECTED = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "number"}, "tags": {"type": "array"}},
    "required": ["name"],
}
LAYOUTS = [
    '{"name":"a"}',
    '{"name": "a", "size": -1.5e3, "tags": [1, "x", {"y": null}]}',
    '{\n  "name": "\\u00e9 \\"é\\" \\\\ \\/",\n  "tags": []\n}'.replace("\\/", "/"),
    '{ "name" : "日本 🦙" , "size" : 0 }',
]


@pytest.mark.parametrize("text", LAYOUTS)
def test_usual_layouts_are_allowed(text):
    jsonschema.validate(json.loads(text), EXPECTED)
    assert accepts(schema_grammar(EXPECTED), text)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"size": 1}', '{"name": 1}', '{"name": "a",}', '{"name": "a" "size": 1}',
     '{"name": "\n"}', '{"name": "\\ud800"}',
     '{"name": "a", "size": 01}', '{"name": "a", "size": .5}', '{"name": "a", "size": NaN}',
     '{"name": "a", "other": 1}', '{"size": 1, "name": "a"}', "{'name': 'a'}"],
)  # fmt: skip
def test_other_texts_are_not(text):
    assert not accepts(schema_grammar(EXPECTED), text)


REFUSED = [
    ({"not": {}}, "'not' is not supported"),
    ({"type": "array", "uniqueItems": True}, "'uniqueItems' is not supported"),
    (
        {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 3}}},
        "#/properties/a: 'multipleOf'",
    ),
    ({"type": "object", "patternProperties": {"^a": {}}}, "'patternProperties'"),
    ({"type": "object", "unevaluatedProperties": False}, "'unevaluatedProperties'"),
    ({"type": "objekt"}, "'objekt' is no type"),
    ({"type": []}, "a type or a list of types"),
    ({"type": 3}, "a type or a list of types"),
    ({"enum": []}, "a list of values"),
    ({"enum": ["a", 1], "minLength": 2}, "values that are listed, and 'minLength'"),
    ({"type": "integer", "enum": ["a"]}, "none of the listed values fits"),
    ({"properties": []}, "an object of schemas"),
    ({"properties": {"a": 5}}, "a schema is an object, true or false"),
    ({"required": ["a", 1]}, "a list of names"),
    ({"required": ["a"], "additionalProperties": False}, "'a' is required"),
    ({"minLength": -1}, "a count"),
    ({"minLength": True}, "a count"),
    ({"minimum": "1"}, "a number"),
    ({"minimum": 5, "maximum": 4}, "there is none"),
    ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "there is none"),
    ({"minItems": 3, "maxItems": 2}, "no array"),
    ({"prefixItems": [{}], "items": False, "minItems": 2}, "no array"),
    ({"minLength": 5, "maxLength": 2}, "no text has at least 5"),
    ({"minLength": 20000}, "repetitions"),
    ({"pattern": "a", "maxLength": 3}, "cannot be honoured together"),
    ({"format": "iban"}, "the format 'iban' is unknown"),
    ({"$ref": "https://example.org/schema"}, "outside of the schema"),
    ({"$ref": "#/$defs/none"}, "refers to nothing"),
    ({"$ref": "#name"}, "outside of the schema"),
    ({"$ref": "#"}, "begins with itself"),
    ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "without an end"),
    ({"allOf": [{"$ref": "#"}, {"type": "object"}]}, "nested more than"),
    ({"type": "object", "oneOf": [{"$ref": "#"}, {"type": "null"}]}, "nested more than"),
    ({"allOf": [{"type": "string"}, {"type": "null"}]}, "no value fits it"),
    ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "two different values of 'pattern'"),
    ({"anyOf": []}, "a list of schemas"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "both option 0 and option 1"),
    ({"oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, "both option"),
    ({"const": "\ud800"}, "cannot be written"),
    (False, "no value fits it"),
    (3, "a schema is an object"),
]


@pytest.mark.parametrize(("schema", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_honoured_is_refused_by_name(schema, message):
    with pytest.raises(GrammarError) as raised:
        follow(read_json_schema(json.dumps(schema)))
    assert message in raised.value.title and raised.value.advice


def doubled(key: str, last: object) -> str:
    """A schema in which every definition names the next one twice: 2^18 ways lead to the last."""
    definitions: dict[str, object] = {"d18": last}
    for number in range(18):
        definitions[f"d{number}"] = {key: [{"$ref": f"#/$defs/d{number + 1}"}] * 2}
    return json.dumps({"$defs": definitions, "type": "object", "$ref": "#/$defs/d0"})


HOSTILE = {
    "no JSON": "{",
    "not a number": '{"minimum": NaN}',
    "deep": "[" * 100_000,
    "deep schemas": '{"items":' * 300 + "{}" + "}" * 300,
    "deep combinations": '{"type": "string", "anyOf": [' * 100 + "true" + "]}" * 100,
    "long": '{"title": "' + "x" * 1_000_000 + '"}',
    "many alternatives": json.dumps(
        {"type": "object", "allOf": [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(40)]}
    ),
    **{
        f"doubled {key}": doubled(key, last)
        for key, last in (("allOf", {}), ("anyOf", False), ("oneOf", False))
    },
    "long names": json.dumps({"properties": {"a" * 400_000: {}}, "additionalProperties": True}),
    **{
        f"infinite {key} of {name}": json.dumps({"type": name, key: "1e400"}).replace('"1e400"', "1e400")
        for name in ("integer", "number")
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    },
    "fine bound": '{"type": "number", "minimum": 0.12345678901234567890123}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_schemas_are_errors(text):
    with pytest.raises(GrammarError):
        follow(read_json_schema(text))


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: {"type": "array", "items": inner, "minItems": 1},
        lambda inner: {"type": "array", "prefixItems": [inner, {}], "maxItems": 2},
        lambda inner: {"type": "object", "properties": {"a": inner}},
        lambda inner: {"type": "object", "properties": {"a": inner, "b": {}}, "additionalProperties": True},
        lambda inner: {"anyOf": [inner, {"type": "null"}]},
    ],
)
def test_the_size_of_a_grammar_grows_with_the_depth_only(around):
    """Lists and optional members use their parts in several places; that must not double at each level."""

    def size(depth: int) -> int:
        schema = {"type": "integer"}
        for _ in range(depth):
            schema = around(schema)
        return len(compile_grammar(schema_grammar(schema)).steps)

    first, second, third = size(10), size(20), size(30)
    assert third - second <= 1.5 * (second - first)


def test_a_large_schema_is_read():
    properties = {
        f"member {number}": {"type": ["string", "integer"], "maxLength": 100} for number in range(200)
    }
    grammar = schema_grammar({"type": "object", "properties": properties, "required": list(properties)[::3]})
    text = json.dumps({name: 1 for name in properties})
    assert accepts(grammar, text)
