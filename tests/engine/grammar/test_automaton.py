"""Following a grammar, against trying everything; and bounds on what it may cost."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.errors import GrammarError
from engine.grammar import automaton as automaton_module
from engine.grammar.automaton import DEAD
from engine.grammar.expressions import Grammar, Reference, Repeat, Sequence, choice, literal, one_of
from engine.grammar.gbnf import read_gbnf
from tests.engine.grammar.following import accepts, follow, random_text, slowly_accepts

RULES = ("root", "p", "q")
leaves = st.one_of(
    st.sampled_from(["a", "b", "ab", "é", ""]).map(literal),
    st.sampled_from([one_of("ab"), one_of("bc")]),
    st.sampled_from(RULES).map(Reference),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: Sequence(tuple(items))),
        st.lists(inner, min_size=1, max_size=3).map(choice),
        st.tuples(inner, st.integers(0, 2), st.integers(0, 2) | st.none()).map(
            lambda parts: Repeat(parts[0], parts[1], None if parts[2] is None else parts[1] + parts[2])
        ),
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=120)
@given(
    st.fixed_dictionaries({name: expressions for name in RULES}),
    st.lists(st.text("abcé", max_size=5), max_size=6),
)
def test_random_grammars_describe_what_trying_everything_finds(rules, texts):
    try:
        grammar = Grammar(rules)
    except GrammarError:
        assume(False)
    automaton = follow(grammar)
    for text in ["", *texts]:
        assert accepts(automaton, text) == slowly_accepts(grammar, text), text
    written = random_text(automaton, random.Random(1))
    if written is not None and len(written) < 12:
        assert slowly_accepts(grammar, written.decode())


def test_every_living_state_can_be_finished():
    """No dead ends: what `follow` calls alive is the beginning of some whole text."""
    automaton = follow(read_gbnf('root ::= "[" (root ("," root)*)? "]" | "x"{2,3}'))
    chance = random.Random(2)
    for _ in range(50):
        assert random_text(automaton, chance) is not None


AMBIGUOUS = [
    'root ::= "a" root "b" | "a" root "c" | ""',
    'root ::= ("a" | "a")*',
    'root ::= x x x x\nx ::= ("a"*)*',
    'root ::= s\ns ::= "a" s s | "a" | ""',
]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_ambiguous_grammars_stay_cheap(text):
    automaton = follow(read_gbnf(text))
    state = automaton.follow(automaton.start, b"a" * 200)
    assert state != DEAD
    # Each further byte leads to few states of few steps, however many ways there are to read the text.
    assert automaton.n_states <= 210


def test_a_long_chain_of_rules_and_deep_nesting():
    chain = "".join(f'r{number} ::= r{number + 1} "x"?\n' for number in range(3000))
    assert accepts(read_gbnf(f'root ::= r0\n{chain}r3000 ::= "y"\n'), "yxx")
    nested = follow(read_gbnf('root ::= "[" root "]" | ""'))
    assert accepts(nested, "[" * 5000 + "]" * 5000)


def test_last_calls_need_no_memory_of_their_callers():
    automaton = follow(read_gbnf('root ::= "a" root | "b"'))
    state = automaton.follow(automaton.start, b"aaaa")
    assert automaton.follow(state, b"a" * 1000) == state


def test_too_many_states_are_an_error(monkeypatch):
    monkeypatch.setattr(automaton_module, "MOST_STATES", 50)
    automaton = follow(read_gbnf('root ::= "[" root "]" | ""'))
    with pytest.raises(GrammarError, match="too many states"):
        automaton.follow(automaton.start, b"[" * 60)
