"""The notation GBNF: what it describes, and clear words for what is wrong."""

import pytest

from engine.errors import GrammarError
from engine.grammar.gbnf import MOST_CHARACTERS, read_gbnf
from tests.engine.grammar.following import accepts, follow

CASES = [
    ('root ::= "yes" | "no"', ["yes", "no"], ["", "y", "yesno", "Yes"]),
    ('root ::= [a-c]+ "é"?', ["a", "abcé"], ["é", "d", "aéé"]),
    ("root ::= [^a-c\\n]", ["d", "日", "]"], ["a", "\n", "dd"]),
    (r"root ::= [\]\\\-^x-]", ["]", "\\", "-", "^", "x"], ["[", "y"]),
    ("root ::= .", ["a", "\n", "🦙"], ["", "ab"]),
    ('root ::= "a"{2} "b"{1,} "c"{0,2}', ["aab", "aabbbcc"], ["ab", "aa", "aabccc"]),
    ('root ::= ("a" | "b" "c")* "d"', ["d", "abcad"], ["bd", "cd"]),
    (r'root ::= "\x41\u00e9\U0001F999\t\"\\"', ['Aé🦙\t"\\'], ["A"]),
    ("root ::= first-rule rest_2 # both\nfirst-rule ::= [0-9]\nrest_2 ::= [0-9]*\n", ["1", "123"], ["", "a"]),
    ('root ::=\n  "a" |\n  "b"\n  | ( "c"\n  "d" )\n', ["a", "b", "cd"], ["c", "ab"]),
    ('root ::= "" | "x"', ["", "x"], ["xx"]),
    ('root ::=\nother ::= "x"', [""], ["x"]),
    ('root ::= "(" root ")" | "x"', ["x", "((x))"], ["(x", "x)"]),
    ('root ::= ("a"?)* "b"', ["b", "aaab"], ["a", "ba"]),
    ('root ::= "a" {0}', [""], ["a"]),
]


@pytest.mark.parametrize(("text", "good", "bad"), CASES, ids=[case[0][:30] for case in CASES])
def test_notation(text, good, bad):
    automaton = follow(read_gbnf(text))
    assert [sample for sample in good if not accepts(automaton, sample)] == []
    assert [sample for sample in bad if accepts(automaton, sample)] == []


WRONG = [
    ("", "no rule named 'root'"),
    ('other ::= "x"', "no rule named 'root'"),
    ("root ::= missing", "'missing', which is not defined"),
    ('root ::= "a"\nroot ::= "b"', "line 2: the rule 'root' is defined twice"),
    ('root = "a"', "::= is missing"),
    ('root ::= "a', 'closing " of a text is missing'),
    ("root ::= [a", "closing ] of a class is missing"),
    ("root ::= [z-a]", "runs backwards"),
    ("root ::= []", "no character in one place"),
    ('root ::= ("a"', "closing ) is missing"),
    ('root ::= "a")', "')' cannot stand here"),
    ('root ::= "a"{2,1}', "at least 2 and at most 1"),
    ('root ::= "a"{x}', "{m}, {m,} or {m,n}"),
    ('root ::= "a"{1,99999}', "more than 10,000 repetitions"),
    (r'root ::= "\q"', "is no escape"),
    (r'root ::= "\UFFFFFFFF"', "is no character"),
    ("root ::= <think>", "single tokens"),
    ('root ::= root "a" | "b"', "'root' begins with itself"),
    ('root ::= a "x"\na ::= b?\nb ::= a | root', "begins with itself"),
    ('root ::= e root\ne ::= ""', "begins with itself"),
    ('root ::= "a" root', "only texts without an end"),
    ("root ::= " + "(" * 500 + '"a"' + ")" * 500, "nested more than"),
    ('root ::= "a"' + "?" * 5000, "too many signs of repetition"),
    ("root ::= " + "x" * MOST_CHARACTERS, "longer than"),
    ('root ::= ((("ab"{9999}){9999}){9999}){9999}', "steps"),
    ("root ::= [\\uD800-\\uDFFF]", "no character in one place"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[message for _, message in WRONG])
def test_faults_are_told(text, message):
    with pytest.raises(GrammarError) as raised:
        follow(read_gbnf(text))
    assert message in raised.value.title and raised.value.advice


def test_a_fault_names_its_line():
    with pytest.raises(GrammarError, match="line 3"):
        read_gbnf('root ::= a\n# a remark\na ::= "x" }\n')
