"""Patterns of JSON Schema, against Python's own regular expressions."""

import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import GrammarError
from engine.grammar.json_schema import schema_grammar
from tests.engine.grammar.following import accepts, follow, random_text

PATTERNS = [
    "^[a-c]+[0-9]{2,3}(x|yy)?$",
    'q[^a-z]"\\\\',
    "^(?:ab|[cd]{2})*?$",
    "^a|b$|c",
    "^\\w+\\.(txt|md)$",
    "^.{2}$",
    "[\\]\\-\\\\x]",
    "^[-a]$",
    "^\\x41\\u00e9$",
    "^\\n\\t/$",
    "^$",
    "",
    "é+",
    "^(a(b(c)?)?)?$",
    "^a{3}b{1,}$",
]
ALPHABET = 'abcdqxy019.-\\"é\n\t/]AX _日'


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_texts_are_found(pattern):
    automaton = follow(schema_grammar({"type": "string", "pattern": pattern}))
    # \Z instead of $, which in Python also stands before a last line break.
    own = re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern), re.ASCII)

    @settings(deadline=None, max_examples=60)
    @given(st.text(ALPHABET, max_size=6))
    def check(text):
        expected = own.search(text) is not None
        assert accepts(automaton, json.dumps(text, ensure_ascii=False)) == expected, text

    check()
    chance = random.Random(5)
    for _ in range(30):
        text = random_text(automaton, chance)
        if text is not None:
            assert own.search(json.loads(text)) is not None


@pytest.mark.parametrize(
    "pattern", [form % name for name in "dDwWsS" for form in ("\\%s", "[\\%s]", "[^\\%s]")]
)
def test_sets_are_what_every_reader_takes_them_for(pattern):
    """ECMA's sets are those of ASCII but for spaces; Python's go by Unicode.  Both have to find a text."""
    automaton = follow(schema_grammar({"type": "string", "pattern": f"^{pattern}$"}))
    readers = [re.compile(pattern), re.compile(pattern, re.ASCII)]
    for code in [*range(0x3100), 0xFEFF, 0xFF11, 0x1D7CE]:
        found = {reader.fullmatch(chr(code)) is not None for reader in readers}
        written = accepts(automaton, json.dumps(chr(code), ensure_ascii=False))
        assert not written or (found == {True} and code != 0xFEFF), hex(code)
        assert written or code >= 0x80 or True not in found or found == {True, False}, hex(code)


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)b", "(?<n>a)", "\\bword", "(a)\\1", "\\p{L}", "a**", "[z-a]", "[a", "(a", "a)", "*", "x{3,1}",
     "\\",     "a^b", "(^a)", "(" * 200 + ")" * 200, "x" * 20000, "[\\d-z]", "\\u{110000}", "[]",
     "\\ud83d", "a{20000}"],
)  # fmt: skip
def test_other_patterns_are_refused(pattern):
    with pytest.raises(GrammarError) as raised:
        follow(schema_grammar({"type": "string", "pattern": pattern}))
    assert raised.value.advice
