"""Which tokens a grammar allows, against asking for each by itself; and whole replies under a grammar."""

import json
import random
import threading

import jsonschema
import numpy as np
import pytest

from engine.backends.fake import FakeBehaviour
from engine.errors import NoAllowedTokenError
from engine.generation import generate
from engine.grammar import constraint as constraint_module
from engine.grammar.constraint import Constraint
from engine.grammar.gbnf import read_gbnf
from engine.grammar.json_schema import schema_grammar
from engine.grammar.program import program_of
from engine.grammar.token_tree import LONGEST_TOKEN, TokenTree, token_tree
from engine.requests import CompletionRequest, Finished, SamplingSettings
from engine.session import Session
from engine.tokenizers import load_tokenizer
from tests.helpers.fake_model import FakeModel
from tests.helpers.vocabularies import CONTROL, byte_pair_metadata, published

JSON = schema_grammar(True)
ANIMAL = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "legs": {"type": "integer", "minimum": 0, "maximum": 8},
        "wild": {"type": "boolean"},
    },
    "required": ["name", "legs"],
}


def small_tokenizer(extra=()):
    merges = ["t r", "tr u", "tru e", '" :', '\u0120 "', "\u00c3 \u00a9", "a b", "n u", "l l", "nu ll"]
    return load_tokenizer(
        byte_pair_metadata(
            merges, extra=[("<end>", CONTROL), *extra], eos_token_id=256 + len(merges), pre="gpt-2"
        )
    )


def one_by_one(constraint, n_tokens):
    return np.array([constraint.allows(token) for token in range(n_tokens)])


def random_walk(constraint, tokenizer, n_tokens, chance, most=60):
    """Tokens drawn from those allowed; each mask is compared with asking for each token."""
    text = b""
    for _ in range(most):
        allowed = constraint.allowed()
        assert (allowed == one_by_one(constraint, n_tokens)).all()
        token = int(chance.choice(np.flatnonzero(allowed)))
        if token in tokenizer.eog_ids:
            return text, True
        constraint.advance(token)
        text += tokenizer.piece(token)
        if constraint.is_complete:
            return text, True
    return text, False


@pytest.mark.parametrize("seed", range(12))
def test_masks_equal_asking_for_each_token(seed):
    tokenizer = small_tokenizer()
    chance = random.Random(seed)
    constraint = Constraint(JSON, tokenizer, tokenizer.n_tokens)
    text, whole = random_walk(constraint, tokenizer, tokenizer.n_tokens, chance)
    if whole:
        json.loads(text.decode())


@pytest.mark.parametrize("name", ["gpt-2", "llama-spm"])
def test_masks_of_a_published_vocabulary(name):
    tokenizer = published(name)
    constraint = Constraint(schema_grammar(ANIMAL), tokenizer, tokenizer.n_tokens)
    random_walk(constraint, tokenizer, tokenizer.n_tokens, random.Random(7), most=12)


def test_a_reply_ends_only_where_the_text_is_whole():
    tokenizer = small_tokenizer()
    (end,) = tokenizer.eog_ids
    constraint = Constraint(read_gbnf('root ::= "a" "b"*'), tokenizer, tokenizer.n_tokens)
    assert not constraint.allowed()[end] and not constraint.allows(end)
    constraint.advance(ord("a"))
    assert constraint.allowed()[end] and constraint.allows(end) and not constraint.is_complete


def test_control_tokens_and_ids_without_logits_are_never_allowed():
    tokenizer = small_tokenizer(extra=[("<tool>", CONTROL), ("x" * (LONGEST_TOKEN + 1), 1)])
    anything = read_gbnf("root ::= .*")
    allowed = Constraint(anything, tokenizer, tokenizer.n_tokens).allowed()
    (end,) = tokenizer.eog_ids
    assert allowed[end] and not allowed[end + 1] and not allowed[end + 2]
    assert len(Constraint(anything, tokenizer, 100).allowed()) == 100


def test_advancing_where_nothing_is_allowed_is_an_error():
    tokenizer = small_tokenizer()
    constraint = Constraint(read_gbnf('root ::= "z"'), tokenizer, tokenizer.n_tokens)
    with pytest.raises(ValueError, match="does not allow"):
        constraint.advance(0)


def test_a_grammar_is_compiled_once():
    grammar = read_gbnf('root ::= "z"')
    assert program_of(grammar) is program_of(grammar)
    assert program_of(grammar) is not program_of(read_gbnf('root ::= "z"'))


def test_later_replies_come_to_the_same_states(monkeypatch):
    tokenizer = small_tokenizer()
    grammar = read_gbnf('root ::= "true" | "null"')
    first = Constraint(grammar, tokenizer, tokenizer.n_tokens)
    first.advance(ord("t"))
    second = Constraint(grammar, tokenizer, tokenizer.n_tokens)
    assert second._automaton is first._automaton
    assert second.allows(ord("n")) and not first.allows(ord("n")), "each is where its own text is"
    others = []
    thread = threading.Thread(target=lambda: others.append(Constraint(grammar, tokenizer, 256)))
    thread.start()
    thread.join()
    assert others[0]._automaton is not first._automaton, "another thread has its own"
    monkeypatch.setattr(constraint_module, "STATES_KEPT", 0)
    assert Constraint(grammar, tokenizer, 256)._automaton is not first._automaton


def test_the_tree_of_a_tokenizer_is_made_once():
    tokenizer = small_tokenizer()
    assert token_tree(tokenizer, 256) is token_tree(tokenizer, 256)
    assert isinstance(token_tree(tokenizer, 100), TokenTree)


def session_with(tokenizer, **model):
    behaviour = FakeBehaviour(**model)
    return Session(
        FakeModel(n_vocabulary=tokenizer.n_tokens, context_size=600, tokenizer=tokenizer, behaviour=behaviour)
    )


def reply(session, grammar, should_stop=lambda: False, **request):
    sampling = request.pop("sampling", SamplingSettings(temperature=1.5, top_k=0, top_p=1, min_p=0, seed=3))
    request = CompletionRequest((40, 41), sampling, grammar=grammar, **request)
    *_, finished = generate(session, request, should_stop)
    assert isinstance(finished, Finished)
    return finished


@pytest.mark.parametrize("seed", range(20))
def test_replies_fit_the_schema(seed):
    session = session_with(small_tokenizer())
    sampling = SamplingSettings(temperature=2.0, top_k=0, top_p=1, min_p=0, seed=seed)
    finished = reply(session, schema_grammar(ANIMAL), sampling=sampling, max_tokens=400)
    assert finished.reason == "stop"
    jsonschema.validate(json.loads(finished.text), ANIMAL)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_reply_that_cannot_go_on_ends_by_itself(temperature):
    session = session_with(small_tokenizer())
    finished = reply(
        session,
        read_gbnf('root ::= "true" | "null"'),
        sampling=SamplingSettings(temperature=temperature, seed=1),
    )
    assert finished.reason == "stop" and finished.text in ("true", "null")


def test_a_limit_still_ends_a_reply():
    finished = reply(session_with(small_tokenizer()), read_gbnf('root ::= "a"{50}'), max_tokens=5)
    assert (finished.reason, finished.text) == ("length", "aaaaa")


def test_the_empty_text_can_be_all_there_is():
    finished = reply(session_with(small_tokenizer()), read_gbnf('root ::= ""'))
    assert (finished.reason, finished.text) == ("stop", "")


def test_bans_against_the_grammar_are_an_error():
    tokenizer = small_tokenizer()
    constraint = Constraint(read_gbnf('root ::= "z"'), tokenizer, tokenizer.n_tokens)
    only = int(np.flatnonzero(constraint.allowed())[0])
    with pytest.raises(NoAllowedTokenError):
        reply(
            session_with(tokenizer),
            read_gbnf('root ::= "z"'),
            sampling=SamplingSettings(banned_tokens=frozenset({only})),
        )
