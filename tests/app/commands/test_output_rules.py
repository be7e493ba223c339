"""--grammar and --json-schema, through the commands."""

import json

import jsonschema
import pytest

FAKE = ("--backend", "fake", "--temp", "1.5", "--top-k", "0", "--seed", "4")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize("place", ["file", "argument"])
def test_json_schema(call_json, tmp_path, tiny_path, place):
    given = json.dumps(SCHEMA)
    if place == "file":
        (tmp_path / "schema.json").write_text(given)
        given = tmp_path / "schema.json"
    out = call_json("complete", tiny_path, "-p", "the", "--json-schema", given, *FAKE)
    assert out["finish_reason"] == "stop"
    jsonschema.validate(json.loads(out["text"]), SCHEMA)


@pytest.mark.parametrize("command", [("complete", "-p", "the"), ("chat", "-m", "the")])
def test_grammar(call, tmp_path, tiny_path, command):
    (tmp_path / "g.gbnf").write_text('root ::= "yes" | "no"')
    name, *prompt = command
    status, out, _ = call(name, tiny_path, *prompt, "--grammar", tmp_path / "g.gbnf", *FAKE)
    assert status == 0 and out.strip() in ("yes", "no")


def test_a_reply_that_is_cut_off_says_so(call, tmp_path, tiny_path):
    (tmp_path / "g.gbnf").write_text('root ::= "a"{50}')
    status, out, err = call(
        "complete", tiny_path, "-p", "the", "-n", "5", "--grammar", tmp_path / "g.gbnf", *FAKE
    )
    assert status == 0 and out.strip() == "aaaaa" and "before it is whole" in err


@pytest.mark.parametrize(
    ("option", "given", "status", "message"),
    [
        ("--json-schema", '{"not": {}}', 2, "'not' is not supported"),
        ("--json-schema", "{", 2, "no JSON"),
        ("--json-schema", "missing.json", 1, "cannot be read"),
        ("--grammar", "missing.gbnf", 1, "cannot be read"),
    ],
)
def test_what_cannot_be_honoured_is_refused_before_anything_is_loaded(
    call, tiny_path, option, given, status, message
):
    ended, out, err = call("complete", tiny_path, "-p", "the", option, given)
    assert ended == status and not out and message in err and "Traceback" not in err


def test_one_of_them_only(call, tiny_path):
    status, _, err = call("complete", tiny_path, "-p", "x", "--grammar", "a", "--json-schema", "{}")
    assert status == 2 and "not allowed with" in err
